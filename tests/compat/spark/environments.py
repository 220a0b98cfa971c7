"""The environments of benchmarks/peers/spark for tests: without one its tests are skipped (requirement.py)."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.peers.process import PeerError
from benchmarks.peers.spark import environment
from benchmarks.peers.spark.session import Session, open_session
from requirement import missing


def python(version: str) -> Path:
    """The Python of the environment with this PySpark."""
    try:
        return environment.python(version)
    except PeerError as error:
        missing(str(error))
        raise


@contextmanager
def open_connector() -> Iterator[Session]:
    """PySpark with Spark's own connector, `format("kafka")`."""
    try:
        conf = environment.connector_conf()
    except PeerError as error:
        missing(str(error))
        raise
    with open_session(python(environment.connector_version()), conf=conf) as session:
        yield session
