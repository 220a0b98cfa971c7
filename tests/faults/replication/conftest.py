"""Disks of brokers that can be filled."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from requirement import missing

SIZE = "96m"


@pytest.fixture
def disks(tmp_path: Path) -> Iterator[Path]:
    """A directory with a file system of its own for each of three brokers."""
    if os.geteuid() != 0:
        missing("only root may mount the file systems of this test")
    with ExitStack() as stack:
        for broker in (1, 2, 3):
            place = tmp_path / f"broker-{broker}"
            place.mkdir()
            subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={SIZE}", "korvet-test", place], check=True)
            stack.callback(subprocess.run, ["umount", "--lazy", place], check=True)
        yield tmp_path
