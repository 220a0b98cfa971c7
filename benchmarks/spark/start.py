"""How long three rows take beside a bare session of Spark, in turns: `python -m benchmarks.spark.start`.

Each figure is a whole program (`three_rows.py`), from its start until it, its JVM and its Python workers have ended,
with the same settings of Spark in all. It shows three rows from a list, from a data source in Python that does nothing
else, and from a topic of ours. Beside it stand the processor's seconds, until the session stops: what else runs on the
machine changes them far less.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from confluent_kafka import Producer

from benchmarks.peers.korvet import Korvet
from benchmarks.peers.process import PeerError
from benchmarks.peers.spark.environment import CACHE
from benchmarks.peers.spark.session import TREE
from benchmarks.spark.three_rows import ROWS

PROGRAM = Path(__file__).with_name("three_rows.py")
WAYS = {"bare": "from a list", "source": "from a data source in Python", "topic": "from a topic"}
PATIENCE = 600.0  # seconds for one program, on a busy machine
TABLE = ["+---+-----+", "|key|value|", "+---+-----+", "|  a|    1|", "|  b|    2|", "|  c|    3|", "+---+-----+"]


def fill(broker: Korvet) -> None:
    producer = Producer({"bootstrap.servers": broker.address})
    for key, value in zip(*ROWS.values(), strict=True):
        producer.produce("three", value, key)
    if producer.flush(60):
        raise PeerError(f"{broker.name}: the rows were not stored")


def measure(where: str) -> tuple[float, float]:
    """Seconds of one program by the clock, and of the processors. Raises PeerError if it does not show the rows."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])  # Spark runs its first `python3`
    environment = os.environ | {"PYTHONPATH": str(TREE), "SPARK_LOCAL_IP": "127.0.0.1", "PATH": path}
    command = [sys.executable, str(PROGRAM), where]
    began = time.perf_counter()
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=PATIENCE)
    seconds = time.perf_counter() - began
    *shown, used = done.stdout.split() or [""]
    if done.returncode or shown != " ".join(TABLE).split():
        raise PeerError(f"{where} did not show three rows:\n{done.stdout}{done.stderr[-3000:]}")
    return seconds, float(used)


def table(measured: dict[str, list[tuple[float, float]]]) -> str:
    """The medians of each way, beside those of a bare session."""
    medians = {way: [statistics.median(each) for each in zip(*found, strict=True)] for way, found in measured.items()}
    lines = [f"{'median of ' + str(len(measured['bare'])):30} {'clock':>16} {'processors':>20}"]
    for way, figures in medians.items():
        cells = [f"{own:6.2f} s {own / bare:6.2f} x" for own, bare in zip(figures, medians["bare"], strict=True)]
        lines.append(f"{WAYS[way]:30} {'    '.join(cells)}")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.spark.start", description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=7, help="how often each is measured (7)")
    options = parser.parse_args()
    CACHE.mkdir(exist_ok=True)
    measured: dict[str, list[tuple[float, float]]] = {way: [] for way in WAYS}
    try:
        with tempfile.TemporaryDirectory(prefix="bench-start-", dir=CACHE) as name, Korvet(Path(name)) as broker:
            fill(broker)
            for number in range(-1, options.rounds):  # the first one does not count: files come from the disk
                for way in list(WAYS)[:: 1 if number % 2 == 0 else -1]:
                    seconds, used = measure(broker.address if way == "topic" else way)
                    print(f"  {WAYS[way]}: {seconds:.2f} s, {used:.2f} CPU-s", file=sys.stderr)
                    if number >= 0:
                        measured[way].append((seconds, used))
    except PeerError as error:
        print(error, file=sys.stderr)
        return 1
    print(table(measured))
    return 0


if __name__ == "__main__":
    sys.exit(main())
