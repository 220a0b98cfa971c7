"""Ctrl-C and SIGTERM as a request to end, for work that no exception may break off."""

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
