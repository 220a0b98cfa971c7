"""A test that hangs ends when its time is over, whatever its event loop is busy with."""

import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]

# Another task is running whenever the alarm of pytest-timeout may come, and takes its exception for its own.
HANGING = """
import asyncio
import time

async def be_busy() -> None:
    while True:
        end = time.monotonic() + 0.05
        while time.monotonic() < end:
            pass
        await asyncio.sleep(0)

def start(ended: object = None) -> None:
    asyncio.create_task(be_busy()).add_done_callback(start)

async def test_that_waits_without_end() -> None:
    start()
    while True:
        await asyncio.sleep(0.01)
"""


@pytest.mark.timeout(280)
def test_a_coroutine_that_waits_without_end_fails_while_others_are_busy(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text((TESTS / "conftest.py").read_text())
    (tmp_path / "test_hanging.py").write_text(HANGING)
    command = [sys.executable, "-m", "pytest", "-p", "no:benchmark", "-p", "no:cacheprovider", "--timeout", "1"]
    ended = subprocess.run(
        [*command, "--rootdir", tmp_path, "-o", f"pythonpath={TESTS}", tmp_path / "test_hanging.py"],
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert ended.returncode == 1
    assert "1 failed" in ended.stdout
    assert "await asyncio.sleep(0.01)" in ended.stdout
