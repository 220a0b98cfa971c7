"""A worker of Spark whose socket was closed, because somebody has seen enough rows: what it prints about that."""

import socket
import subprocess
import sys
from collections.abc import Iterator

import pytest

# A worker as Spark's daemon runs it, and a task that writes until nobody takes it any more.
WORKER = """
import signal, socket, sys

import pyspark.worker
from pyspark import TaskContext, daemon

from korvet_fast.spark.closed_pipe import exit_when_spark_closes

def rows():
    {begin}
    yield from [bytes(1 << 20)] * {count}

def main(infile, outfile):
    TaskContext._getOrCreate()._taskAttemptId = 7
    written = rows()
    try:
        try:
            for row in written:
                outfile.write(row)
        finally:
            written.close()
        TaskContext._setTaskContext({after})
        print("wrote", flush=True)
        infile.read(1)
        outfile.write(b"the end")
    except OSError as error:
        outfile.write(str(error).encode())  # as Spark says what failed
        sys.exit(-1)

pyspark.worker.main = main
signal.signal(signal.SIGPIPE, signal.SIG_IGN)
sys.exit(daemon.worker(socket.socket(fileno=int(sys.argv.pop())), authenticated=True))
"""
OURS = "exit_when_spark_closes()"
NOISE = "PySpark daemon failed to flush the output"


@pytest.fixture
def spark() -> Iterator[tuple[socket.socket, socket.socket]]:
    """The two ends of a worker's connection over loopback."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        ours = socket.create_connection(listening.getsockname())
        theirs, _ = listening.accept()
    with ours, theirs:
        yield ours, theirs


def run(ends: tuple[socket.socket, socket.socket], read: int, **given: object) -> str:
    """What a worker prints as an error whose socket is closed when `read` bytes of its rows are there."""
    ours, theirs = ends
    fields = {"begin": OURS, "count": 64, "after": None} | given
    command = [sys.executable, "-c", WORKER.format(**fields), str(theirs.fileno())]
    with subprocess.Popen(
        command, pass_fds=[theirs.fileno()], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as worker:
        theirs.close()
        assert ours.recv(read, socket.MSG_WAITALL)
        if fields["count"] == 1:  # all is written, and taken: the worker writes its last words to a closed socket
            assert worker.stdout is not None
            assert worker.stdout.readline() == "wrote\n"
        ours.close()
        _, said = worker.communicate(timeout=60)
    return said


def test_without_us_it_makes_a_noise(spark: tuple[socket.socket, socket.socket]) -> None:
    """So that the tests below fail if Spark's worker is quiet by itself one day, and this is not needed any more."""
    assert NOISE in run(spark, 10, begin="pass")


def test_a_reader_that_is_closed_in_the_middle(spark: tuple[socket.socket, socket.socket]) -> None:
    """Bytes that nobody has read reset the connection, of which the first failing write is told without a signal."""
    assert run(spark, 10) == ""


@pytest.mark.parametrize("after", ["None", "TaskContext.get()"])
def test_a_reader_that_came_to_its_end(spark: tuple[socket.socket, socket.socket], after: str) -> None:
    """PySpark 4.3 takes the task away before the last writes, 4.1 does not."""
    assert run(spark, 1 << 20, count=1, after=after) == ""


def test_a_later_task_of_the_worker_is_told_of_a_closed_pipe(spark: tuple[socket.socket, socket.socket]) -> None:
    """A function of somebody else may write to sockets of its own: a closed one must stay an error there."""
    begin = f"{OURS}; TaskContext.get()._taskAttemptId = 8"
    assert NOISE in run(spark, 10, begin=begin)
