"""A program run by the Python of a virtual environment that nobody activated, with `PYSPARK_PYTHON` unset."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pyspark
import pytest

import korvet_fast
from broker_process import BrokerProcess
from compat.spark.cluster import bare_python
from requirement import require

LONGEST = 280  # seconds: a JVM starts, on a machine that may be busy
pytestmark = pytest.mark.timeout(LONGEST + 20)

PROGRAM = """
import sys

sys.path.insert(0, sys.argv[1])

from pyspark.sql import SparkSession

from korvet_fast.spark import configure

spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
configure(spark)
where = {"kafka.bootstrap.servers": sys.argv[2]}
rows = spark.range(3).selectExpr("CAST(id AS STRING) AS value")
rows.write.format("korvet").options(**where, topic="interpreters").mode("append").save()
read = spark.read.format("korvet").options(**where, subscribe="interpreters").load()
print(sorted(bytes(row.value) for row in read.collect()))
print(spark.sparkContext.parallelize([0], 1).map(lambda _: __import__("pyspark").__file__).first())
spark.stop()
"""


def run(directory: Path, broker: BrokerProcess, **more: str) -> "subprocess.CompletedProcess[str]":
    """The program by its interpreter's absolute path; the `python3` on the path is another one, without packages."""
    binaries = directory / "bin"
    binaries.mkdir()
    (binaries / "python3").symlink_to(bare_python())
    script = directory / "program.py"
    script.write_text(PROGRAM)
    path = [str(binaries), str(Path(require("java")).parent), "/usr/bin", "/bin"]
    environment = {"PATH": ":".join(path), "HOME": str(directory), "SPARK_LOCAL_IP": "127.0.0.1", **more}
    environment |= {name: os.environ[name] for name in ("JAVA_HOME", "JDK_JAVA_OPTIONS") if name in os.environ}
    assert shutil.which("python3", path=environment["PATH"]) == str(binaries / "python3")
    tree = str(Path(korvet_fast.__file__).parents[1])
    command = [sys.executable, str(script), tree, broker.bootstrap]
    return subprocess.run(command, capture_output=True, text=True, cwd=directory, env=environment, timeout=LONGEST)


def test_finding_4_8_workers_run_the_interpreter_of_the_program(tmp_path: Path, broker: BrokerProcess) -> None:
    done = run(tmp_path, broker)
    assert done.returncode == 0, done.stderr[-3000:]
    rows, imported = done.stdout.splitlines()[-2:]
    assert rows == "[b'0', b'1', b'2']"
    assert imported == pyspark.__file__  # not in the archive, which has no compiled code


def test_an_interpreter_that_was_chosen_is_kept(tmp_path: Path, broker: BrokerProcess) -> None:
    done = run(tmp_path, broker, PYSPARK_PYTHON="/nowhere/python3")
    assert done.returncode != 0
    assert "/nowhere/python3" in done.stderr
