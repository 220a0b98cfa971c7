"""Threads that clients share fairly: addresses take turns, then the connections of one, whatever each has waiting.

An honest client's batch waited 38 s behind 1,500 logins by PLAIN, one on each connection of a stranger.

A turn is fair only if it is short: a batch of 250 KB may unpack to 250 MB, and behind one of those of each of 40
connections an honest one waited 2.8 s. So a work starts with a small limit, and raises `Longer` if that is not enough.
Long works take turns among themselves, and always leave one thread to the others.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from threading import Lock
from typing import Any, TypeVar

from korvet_fast.core.address_line import AddressLine
from korvet_fast.errors import CodecError, KorvetError, forget_frames
from korvet_fast.prestarted_executor import PrestartedExecutor
from korvet_fast.types import SHORT_EXPANDED, UNPACKS_TO_MUCH

R = TypeVar("R")
_Work = tuple["Future[Any]", Callable[[], Any]]
_Client = tuple[object, object]  # an address, and a connection from there


class Longer(Exception):
    """Raised by a work that needs more time; `work` takes its place."""

    def __init__(self, work: Callable[..., Any], *arguments: object) -> None:
        super().__init__()
        self.work = partial(work, *arguments)


def do_at_length(work: Callable[..., R], *arguments: object) -> R:
    """Do it however long it takes."""
    try:
        return work(*arguments)
    except Longer as longer:
        result: R = do_at_length(longer.work)
        return result


def unpack_shortly(work: Callable[..., R], most: int, *arguments: object) -> R:
    """Do a work on a batch that may not unpack to much; raise `Longer` where that is not enough.

    The last argument of `work` is the limit in bytes: what a short turn allows, and `most` when there is time for it.
    """
    try:
        return work(*arguments, SHORT_EXPANDED)
    except CodecError as error:
        if error.code != UNPACKS_TO_MUCH:
            raise
        raise Longer(work, *arguments, most) from None


class _Line:
    """Works that wait, by client."""

    def __init__(self) -> None:
        self._line: AddressLine[_Client] = AddressLine()
        self._works: dict[_Client, deque[_Work]] = {}

    def __bool__(self) -> bool:
        return bool(self._line)

    def add(self, client: _Client, work: _Work) -> None:
        works = self._works.get(client)
        if works is None:
            self._works[client] = deque((work,))
            self._line.append(client[0], client)
        else:
            works.append(work)

    def pop(self) -> tuple[_Client, _Work]:
        """The next work, and whose it is."""
        client = self._line.popleft()
        works = self._works[client]
        work = works.popleft()
        if works:
            self._line.append(client[0], client)
        else:
            del self._works[client]
        return client, work


class FairExecutor(PrestartedExecutor):
    """A pool of threads. The works that wait are bounded: each belongs to a request whose memory is counted."""

    def __init__(self, threads: int, name: str) -> None:
        """Raises `TooFewThreads`."""
        super().__init__(threads, name)
        self._lock = Lock()
        self._short, self._long = _Line(), _Line()
        self._places = max(1, threads - 1)  # threads that may do long works and do not yet
        self._closed = False

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Take no more works."""
        with self._lock:
            self._closed = True
        super().shutdown(wait, cancel_futures=cancel_futures)

    def run_for(
        self, address: object, client: object, work: Callable[..., R], *arguments: object
    ) -> "asyncio.Future[R]":
        """Have a thread do this in the turn of the address and its client. Call it on the event loop.

        After `shutdown` the future is cancelled: the caller then works for a client that was cut off.
        """
        future: Future[R] = Future()
        if self._closed:
            future.cancel()
            return asyncio.wrap_future(future)
        with self._lock:
            self._short.add((address, client), (future, partial(work, *arguments)))
        self.submit(self._do_short)  # one call for each work; it takes the work whose turn it is then
        return asyncio.wrap_future(future)

    def _do_short(self) -> None:
        with self._lock:
            client, (future, work) = self._short.pop()
        if not future.set_running_or_notify_cancel():
            return
        if (more := _tell(future, work)) is not None:
            self._put_off(client, (future, more))

    def _put_off(self, client: _Client, work: _Work) -> None:
        with self._lock:
            self._long.add(client, work)
            if not self._places:
                return  # a thread that does long works takes this one too
            self._places -= 1
        self._do_long()

    def _do_long(self) -> None:
        """Long works, one after the other. They wait here rather than in the queue of the pool, where others do."""
        while True:
            with self._lock:
                if not self._long:
                    self._places += 1
                    return
                _, (future, work) = self._long.pop()
            more: Callable[[], Any] | None = work
            while more is not None:
                more = _tell(future, more)


def _tell(future: "Future[Any]", work: Callable[[], Any]) -> Callable[[], Any] | None:
    """Run `work`, and end `future` with its result or exception. If it raises `Longer`, return what to do instead.

    An error knows the frames it went through, and these know the future: none of it would be freed before Python looks
    for circles, which is rare. A client is told no more than the error's words, so those go without the frames.
    """
    try:
        result = work()
    except Longer as longer:
        return longer.work
    except (KorvetError, CodecError) as error:
        future.set_exception(forget_frames(error))
    except BaseException as error:  # noqa: BLE001  as above
        future.set_exception(error)
    else:
        future.set_result(result)
    return None
