"""A pool of threads that all begin at once, or not at all."""

import threading

import pytest

from korvet_fast.errors import TooFewThreads
from korvet_fast.prestarted_executor import PrestartedExecutor


def begun(name: str) -> int:
    """The number of threads of a pool."""
    return sum(thread.name.startswith(f"{name}_") for thread in threading.enumerate())


def refuse_after(monkeypatch: pytest.MonkeyPatch, most: int, why: str = "can't start new thread") -> None:
    """So many threads are started, and no more; the interpreter says why."""
    start = threading.Thread.start
    started: list[threading.Thread] = []

    def start_or_refuse(thread: threading.Thread) -> None:
        if len(started) == most:
            raise RuntimeError(why)
        started.append(thread)
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", start_or_refuse)


def test_all_threads_begin_at_once_and_no_other_later(monkeypatch: pytest.MonkeyPatch) -> None:
    with PrestartedExecutor(3, "whole") as pool:
        assert begun("whole") == 3
        refuse_after(monkeypatch, 0)
        barrier = threading.Barrier(3)  # which three works pass only side by side
        works = [pool.submit(barrier.wait) for _ in range(30)]
        assert sorted(work.result(60) for work in works) == sorted([0, 1, 2] * 10)
    assert begun("whole") == 0


@pytest.mark.parametrize("most", [0, 1, 2])
def test_too_few_are_none(monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    refuse_after(monkeypatch, most)
    with pytest.raises(TooFewThreads, match="raise the limit"):
        PrestartedExecutor(3, "torn")
    assert begun("torn") == 0


def test_a_program_that_is_ending_has_no_limit_to_raise(monkeypatch: pytest.MonkeyPatch) -> None:
    refuse_after(monkeypatch, 1, "can't create new thread at interpreter shutdown")
    with pytest.raises(RuntimeError, match="at interpreter shutdown"):
        PrestartedExecutor(3, "late")
    assert begun("late") == 0
