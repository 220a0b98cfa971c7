"""The parent of `serve --workers N`: when it kills a worker, when it starts one again, and when it ends all."""

import errno
import mmap
import multiprocessing
import os
import signal
import time
from collections.abc import Callable
from multiprocessing.process import BaseProcess
from pathlib import Path
from unittest.mock import create_autospec

import click
import pytest

from korvet_fast.cli import workers
from korvet_fast.cli.broker_options import BrokerOptions
from korvet_fast.cli.workers import Companion, Life, Parent, Worker, kill_silent
from korvet_fast.config import read_settings


def make_worker(number: int = 1) -> tuple[Worker, Life]:
    life = Life(mmap.mmap(-1, mmap.PAGESIZE), number)
    worker = Worker(number, create_autospec(BrokerOptions), life)
    worker.process = create_autospec(BaseProcess, instance=True)
    worker.process.is_alive.return_value = True
    return worker, life


def test_a_silent_worker_is_killed_once(caplog: pytest.LogCaptureFixture) -> None:
    """The system may take a while to end it: until then nothing is said again."""
    (silent, _), (other, life) = make_worker(), make_worker(2)
    for _ in range(6):
        kill_silent([silent, other], 1.0, 3.0)
        life.beat()
    assert caplog.messages == ["worker 1 gave no sign of life for 3 s and is killed"]
    assert silent.process.kill.call_count == 1
    assert other.process.kill.call_count == 0


def test_a_sign_of_life_ends_the_silence() -> None:
    worker, life = make_worker()
    for _ in range(20):
        kill_silent([worker], 14.0, 3.0)
        life.beat()
    assert worker.process.kill.call_count == 0


def test_where_all_are_silent_it_may_be_the_disk() -> None:
    """They have five times as long; a worker that is about to be started again gives no sign, and is not asked."""
    pairs = [make_worker(number) for number in (1, 2, 3)]
    made = [worker for worker, _ in pairs]
    gone, made[2].process = made[2].process, None
    for _ in range(15):
        kill_silent(made, 1.0, 3.0)
    assert [worker.process.kill.call_count for worker in made[:2]] == [0, 0]
    for _, life in pairs[:2]:
        life.beat()
    for _ in range(17):
        kill_silent(made, 1.0, 3.0)
    assert [worker.process.kill.call_count for worker in made[:2]] == [1, 1]
    assert gone.kill.call_count == 0


def end(worker: Worker, code: int) -> float:
    """Have its process end with this code; returns the seconds until the next one may start."""
    worker.process = create_autospec(BaseProcess, instance=True)
    worker.process.exitcode = code
    assert worker.note_end() == code
    return worker.due - time.monotonic()


def test_a_worker_that_never_becomes_ready_is_started_ever_more_rarely() -> None:
    """For days, too: 2**1024 would be no number of seconds."""
    worker, _ = make_worker()
    worker.start(lambda _: None)
    pauses = [end(worker, -signal.SIGKILL) for _ in range(1100)]
    assert pauses[0] <= 1
    assert 20 < pauses[10] <= 30
    assert pauses[-1] <= 30


def test_a_worker_that_serves_and_dies_at_once_is_started_ever_more_rarely(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever kills it may come with the first request; once it has served for long, it is started at once."""
    worker, life = make_worker()
    worker.start(lambda _: None)
    pauses = []
    for _ in range(8):
        life.note_ready()
        pauses.append(end(worker, -signal.SIGSEGV))
    assert pauses[0] <= 1
    assert 20 < pauses[-1] <= 30
    later = time.monotonic() + 60
    monkeypatch.setattr("time.monotonic", lambda: later)
    assert end(worker, -signal.SIGSEGV) <= 0
    worker.process = None
    worker.start(lambda _: None)
    life.note_ready()
    assert end(worker, -signal.SIGSEGV) == pytest.approx(1)


def test_a_worker_that_the_system_has_no_room_for_is_tried_again(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse() -> int:
        raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))

    monkeypatch.setattr(os, "fork", refuse)
    worker, _ = make_worker()
    worker.process = None
    before = list_descriptors()
    worker.start(lambda _: None)
    assert worker.process is None
    assert list_descriptors() <= before, "a parent that tries for hours would have none left"
    assert worker.due > time.monotonic()
    assert "worker 1 cannot be started (Resource temporarily unavailable): tried again in" in caplog.text


def list_descriptors() -> set[str]:
    return {each.name for each in Path("/proc/self/fd").iterdir()}


def make_parent(count: int, serve: Callable[[Worker, Companion], None]) -> Parent:
    plan = BrokerOptions("file:x", Path("x"), (), (), read_settings([]), False)
    return Parent([plan] * count, serve)


def make_short_lived(place: Path, number: int) -> Callable[[Worker, Companion], None]:
    """A worker that ends by this signal in its first life, and has its parent end all in its second."""

    def serve(_: Worker, __: Companion) -> None:
        try:
            (place / "first life").touch(exist_ok=False)
        except FileExistsError:
            os.kill(os.getppid(), signal.SIGTERM)
        else:
            os.kill(os.getpid(), number)

    return serve


def test_a_signal_without_a_name_is_told_by_its_number(caplog: pytest.LogCaptureFixture, tmp_path: Path) -> None:
    assert make_parent(1, make_short_lived(tmp_path, 36)).run() == 0
    assert "worker 1 has ended (signal 36): it starts again in" in caplog.text


def test_a_parent_whose_starter_ignores_ended_children_sees_its_own_end(
    caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    """SIGCHLD stays ignored in what such a program starts: a worker that died would be waited for, for ever."""
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        assert make_parent(1, make_short_lived(tmp_path, signal.SIGKILL)).run() == 0
    finally:
        signal.signal(signal.SIGCHLD, before)
    assert "worker 1 has ended (SIGKILL): it starts again in" in caplog.text


def test_a_worker_that_cannot_start_again_does_not_end_the_others(
    caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    """Its first life was short, and a port is taken by now: the others may have served for hours."""

    def serve(worker: Worker, companion: Companion) -> None:
        if worker.number == 1:
            companion.life.note_ready()
            (tmp_path / "ready").touch()
            time.sleep(240)
        life = len(list(tmp_path.glob("life *"))) + 1
        (tmp_path / f"life {life}").touch()
        if life == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        while not (tmp_path / "ready").exists():
            time.sleep(0.01)
        if life == 2:
            raise click.ClickException("the port is taken")
        os.kill(os.getppid(), signal.SIGTERM)

    assert make_parent(2, serve).run() == 0
    assert "worker 2 has ended (exit code 1): it starts again in" in caplog.text


def test_workers_of_which_one_cannot_start_end(caplog: pytest.LogCaptureFixture) -> None:
    """It has said why, and would say it again; others may be ready by then."""

    def serve(worker: Worker, companion: Companion) -> None:
        if worker.number == 2:
            raise click.ClickException("the port is taken")
        companion.life.note_ready()
        time.sleep(240)

    assert make_parent(2, serve).run() == 1
    assert caplog.text == ""


def test_a_second_signal_kills_the_workers_and_says_so(caplog: pytest.LogCaptureFixture) -> None:
    def serve(_: Worker, __: Companion) -> None:
        signal.signal(signal.SIGTERM, lambda *_: os.kill(os.getppid(), signal.SIGTERM))
        os.kill(os.getppid(), signal.SIGTERM)
        time.sleep(240)

    assert make_parent(1, serve).run() == 1
    assert caplog.messages == ["told a second time to stop: the workers are killed, requests under way are cut off"]


def test_an_error_of_the_parent_ends_all_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the interpreter, which is about to end, would wait for them for ever."""

    earlier = multiprocessing.active_children()
    children: list[BaseProcess] = []

    def fail(*_: object) -> None:
        children.extend(child for child in multiprocessing.active_children() if child not in earlier)
        raise ZeroDivisionError

    monkeypatch.setattr(workers, "wait", fail)
    with pytest.raises(ZeroDivisionError):
        make_parent(2, lambda _, __: time.sleep(240)).run()
    try:
        for child in children:
            child.join(120)
        assert [child.exitcode for child in children] == [-signal.SIGTERM] * 2
    finally:
        for child in children:
            child.kill()
