"""The parent of `serve --workers N`, with a process that takes its time to end."""

import mmap
from multiprocessing.process import BaseProcess
from unittest.mock import create_autospec

import pytest

from korvet_fast.cli.broker_options import BrokerOptions
from korvet_fast.cli.workers import Life, Worker


def make_worker() -> tuple[Worker, Life]:
    life = Life(mmap.mmap(-1, mmap.PAGESIZE), 1)
    worker = Worker(1, create_autospec(BrokerOptions), life)
    worker.process = create_autospec(BaseProcess, instance=True)
    worker.process.is_alive.return_value = True
    return worker, life


def test_a_silent_worker_is_killed_once(caplog: pytest.LogCaptureFixture) -> None:
    """The system may take a while to end it: until then nothing is said again."""
    worker, _ = make_worker()
    for _ in range(6):
        worker.kill_if_silent(1.0, 3.0)
    assert caplog.messages == ["worker 1 gave no sign of life for 3 s and is killed"]
    assert worker.process.kill.call_count == 1


def test_a_sign_of_life_ends_the_silence() -> None:
    worker, life = make_worker()
    for _ in range(6):
        worker.kill_if_silent(2.0, 3.0)
        life.beat()
    assert worker.process.kill.call_count == 0
