"""What a person sees of a program of their own: nothing but what went wrong."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import korvet_fast
from broker_process import BrokerProcess
from compat.spark import topics
from requirement import require

LONGEST = 780  # seconds: a JVM starts, on a machine that may be busy
pytestmark = pytest.mark.timeout(LONGEST + 20)

PROGRAM = """
import sys

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from korvet_fast.spark import configure

where = {"kafka.bootstrap.servers": sys.argv[1]}
builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
builder = builder.config("spark.ui.showConsoleProgress", "false")
spark = configure(builder.config("spark.log.level", "ERROR").getOrCreate())
spark = configure(builder.getOrCreate())  # the cell of a notebook is run again
frame = spark.read.format("korvet").options(**where, subscribe="quiet").load().selectExpr("CAST(value AS STRING)")
print("begins", file=sys.stderr, flush=True)
frame.show(2)
print(len(frame.take(3)), frame.first().value)
print(frame.count(), frame.where("value = '7'").count())
try:
    spark.read.format("korvet").options(**where, subscribe="nope").load().count()
except PySparkException as error:
    print(str(error).strip())
print("ends", file=sys.stderr, flush=True)
spark.stop()
"""
BURST = 60_000  # records that a producer has in memory
COUNT = 5 * BURST  # records: far more than `show` takes, and than a socket holds


def test_a_look_at_a_large_topic_ends_without_noise_of_ours(tmp_path: Path, broker: BrokerProcess) -> None:
    require("java")
    topics.create(broker.bootstrap, "quiet", 1)
    for begin in range(0, COUNT, BURST):
        numbers = range(begin, begin + BURST)
        topics.send(broker.bootstrap, "quiet", "lz4", ((0, None, b"%d" % number, None) for number in numbers))
    script = tmp_path / "program.py"
    script.write_text(PROGRAM)
    own = {"PYTHONPATH": str(Path(korvet_fast.__file__).parents[1]), "SPARK_LOCAL_IP": "127.0.0.1"}
    command = [sys.executable, str(script), broker.bootstrap]
    done = subprocess.run(
        command, capture_output=True, text=True, cwd=tmp_path, env={**os.environ, **own}, timeout=LONGEST
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert "|    0|" in done.stdout
    assert f"3 0\n{COUNT} 1\n" in done.stdout
    said, state = done.stdout.splitlines()[-2:]
    assert re.fullmatch(r".*BrokerError: topic 'nope': There is no such topic or partition here.*", said), said
    assert re.fullmatch(r"\s*SQLSTATE: \w+", state), state
    between = done.stderr[done.stderr.index("begins\n") + len("begins\n") : done.stderr.index("ends\n")]
    assert between == "", between
    assert "already" not in done.stderr, done.stderr
