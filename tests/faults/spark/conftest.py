"""Sessions of Spark that are killed."""

import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.peers.spark.session import Session
from requirement import require

PROGRAM = Path(__file__).with_name("interrupted.py")
MET_WITHIN = 200.0


class Drivers:
    """One driver at a time; the next is started when the one before was killed."""

    def __init__(self, place: Path) -> None:
        self._order = place / "order"
        self._session: Session | None = None

    @property
    def session(self) -> Session:
        """The driver that lives."""
        if self._session is None:
            environment = {"KORVET_INTERRUPT": str(self._order)}
            master = "local[2,4]"  # a task may fail three times
            python = Path(sys.executable)
            self._session = Session(python, korvet=True, master=master, program=PROGRAM, environment=environment)
        return self._session

    def order(self, what: str) -> None:
        """`stop` or `die`, and where: whoever comes there first does."""
        fresh = self._order.with_suffix(".new")
        fresh.write_text(what)
        fresh.rename(self._order)  # never read half written

    def met(self) -> None:
        """Wait until somebody has come there."""
        met = self._order.with_suffix(".met")
        deadline = time.monotonic() + MET_WITHIN
        while not met.exists():
            assert time.monotonic() < deadline, "nobody came to " + self._order.read_text()
            time.sleep(0.02)
        met.unlink()

    def kill(self) -> None:
        """kill -9 to the driver, its JVM and its workers."""
        assert self._session is not None
        self._session.kill()
        self._session = None

    def close(self) -> None:
        if self._session is not None:
            self._session.close()


@pytest.fixture(scope="module")
def drivers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Drivers]:
    require("java")
    opened = Drivers(tmp_path_factory.mktemp("drivers"))
    yield opened
    opened.close()
