"""A signal's handler runs between any two lines of the thread that it interrupts: it may end the producer there."""

import sys
import threading
import time
from collections.abc import Awaitable, Callable
from itertools import count
from types import FrameType
from typing import Any

import pytest

from korvet_fast.client import Producer
from korvet_fast.client.producer import ProducerClosed
from redis_server import free_port

Run = Callable[[Callable[[], Awaitable[Any]]], Any]
PATIENCE = 60.0  # seconds; whoever has not come back by then hangs


class Interrupt:
    """Calls `handler` once, before the line with that number of those that the traced thread runs, without those of
    the modules `but`.
    """

    def __init__(self, line: int, but: tuple[str, ...], handler: Callable[[], None]) -> None:
        self.called = False
        self._but = but
        self._lines = count(1)
        self._line = line
        self._handler = handler

    def __call__(self, frame: FrameType, event: str, _argument: Any) -> "Interrupt":
        if event == "line" and frame.f_globals["__name__"] not in self._but and next(self._lines) == self._line:
            self.called = True
            sys.settrace(None)
            self._handler()
        return self


def send(p: Producer) -> Any:
    return p.send("t", b"x")


# While a thread waits for a future it holds the future's lock, but for the wait itself: that is Python's own.
WAITS = ("concurrent.futures._base", "threading")


def interrupted(line: int, call: Callable[[Producer], Any], found: list[Any]) -> None:
    """One call, interrupted before that line; `found`: whether the call has so many lines, and what came of it."""
    p = Producer(f"127.0.0.1:{free_port()}", delivery_timeout_ms=20)
    p._loop.call_soon_threadsafe(time.sleep, 0.01)  # the thread has not begun with the next one
    p.send("t", b"earlier")
    interrupt = Interrupt(line, () if call is send else WAITS, p.close if line % 2 else p.abort)
    try:
        sys.settrace(interrupt)
        result = call(p)
        sys.settrace(None)
        found += [interrupt.called, result]
    except ProducerClosed as error:
        found += [interrupt.called, error]
    finally:
        sys.settrace(None)
        p.abort()


@pytest.mark.parametrize("call", [send, Producer.flush, Producer.metrics])
def test_a_handler_may_end_the_producer_at_any_line(run: Run, call: Callable[[Producer], Any]) -> None:
    """It waited for a lock that the interrupted thread held, or left a result that nobody would end."""
    for line in count(1):
        found: list[Any] = []
        thread = threading.Thread(target=interrupted, args=(line, call, found), daemon=True)
        thread.start()
        thread.join(PATIENCE)
        assert not thread.is_alive(), f"it hangs after line {line}"
        called, result = found
        if not called:
            break
        if call is send and not isinstance(result, ProducerClosed):
            assert result.done(), f"nobody ends the result after line {line}"
    assert line > 20
