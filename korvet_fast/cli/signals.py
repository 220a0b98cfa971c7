"""Ctrl-C and SIGTERM as a request to end: for work that no exception may break off, and for a coroutine."""

import asyncio
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def asked_to_end() -> Iterator[threading.Event]:
    """An event that Ctrl-C or SIGTERM sets while the block runs; the second one raises `KeyboardInterrupt`.

    An exception out of a signal handler would break off a call into Java, and py4j would close the connection that the
    next call needs.
    """
    asked = threading.Event()

    def ask(*_: object) -> None:
        if asked.is_set():
            raise KeyboardInterrupt
        asked.set()

    previous = {which: signal.signal(which, ask) for which in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield asked
    finally:
        for which, handler in previous.items():
            signal.signal(which, handler)


@contextmanager
def ended_by_sigterm() -> Iterator[None]:
    """SIGTERM cancels the coroutine in the block, as Ctrl-C does; the block then ends without an error.

    It does so too where Ctrl-C is ignored, as for a command that a script has put into the background.
    """
    task, loop = asyncio.current_task(), asyncio.get_running_loop()
    assert task is not None, "a coroutine is run"
    asked = asyncio.Event()

    def ask() -> None:
        asked.set()
        task.cancel()

    loop.add_signal_handler(signal.SIGTERM, ask)
    try:
        yield
    except asyncio.CancelledError:
        if not asked.is_set():
            raise
    finally:
        loop.remove_signal_handler(signal.SIGTERM)
