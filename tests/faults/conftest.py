"""Disks and clocks that misbehave."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from faults.clock import Clock, build_library
from requirement import missing, require


class Flushes:
    """Controls the flushes of a process that was started with `before`."""

    def __init__(self, library: Path, order: Path) -> None:
        self.before = ("env", f"LD_PRELOAD={library}", f"FLUSH_FAULT={order}")
        self._order = order

    def fail(self) -> None:
        """They report EIO from now on."""
        self._give("fail")

    def hang(self) -> None:
        """They do not return until `heal`."""
        self._give("hang")

    def slow_down(self) -> None:
        """Each takes 20 ms more."""
        self._give("slow")

    def heal(self) -> None:
        """They work again."""
        self._order.unlink(missing_ok=True)

    def _give(self, order: str) -> None:
        fresh = self._order.with_suffix(".new")
        fresh.write_text(order)
        fresh.replace(self._order)  # never read half written


@pytest.fixture(scope="session")
def flush_library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    library = tmp_path_factory.mktemp("flush") / "flush.so"
    source = Path(__file__).with_name("flush.c")
    subprocess.run([require("cc"), "-shared", "-fPIC", "-O1", "-o", library, source, "-ldl"], check=True)
    return library


@pytest.fixture
def flushes(flush_library: Path, tmp_path: Path) -> Iterator[Flushes]:
    found = Flushes(flush_library, tmp_path / "flush-order")
    yield found
    found.heal()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 4 MiB that is really full when it is full."""
    if os.geteuid() != 0:
        missing("only root may mount the small file system of this test")
    place = tmp_path / "disk"
    place.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "korvet-test", place], check=True)
    yield place
    subprocess.run(["umount", "--lazy", place], check=True)


@pytest.fixture(scope="session")
def clock_library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_library(tmp_path_factory.mktemp("clock"))


@pytest.fixture
def clock(clock_library: Path, tmp_path: Path) -> Clock:
    return Clock(clock_library, tmp_path / "shift")
