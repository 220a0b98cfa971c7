"""Reading ahead: who reads a log from front to back finds the next reply there, or on its way, when it asks."""

import asyncio
from collections import OrderedDict
from collections.abc import Coroutine
from typing import Any, NamedTuple

from korvet_fast.core.types import Buffer
from korvet_fast.errors import StoreError

SIZE = 1 << 20  # bytes asked for ahead, about
_LOGS = 32  # that are read ahead at a time
_FRESH = 1.0  # seconds for which a reply may be used: as long as anything is believed that other programs can change


class _Kept(NamedTuple):
    start: int
    at: float
    reply: "asyncio.Task[list[Buffer]]"


class Ahead:
    """One reply for each of some logs: a few dozen megabytes at most."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, _Kept] = OrderedDict()  # by key

    def ask(self, key: str, start: int, call: Coroutine[Any, Any, list[Buffer]]) -> None:
        """`call` gets an XRANGE of a key from offset `start` on."""
        loop = asyncio.get_running_loop()
        reply = loop.create_task(call)
        reply.add_done_callback(_look_at)
        self._kept[key] = _Kept(start, loop.time(), reply)
        self._kept.move_to_end(key)
        if len(self._kept) > _LOGS:
            self._kept.popitem(last=False)

    async def take(self, key: str, start: int) -> Buffer | None:
        """The reply that begins at `start`; None if there is none, or none with anything in it."""
        kept = self._kept.pop(key, None)
        if kept is None or kept.start != start or asyncio.get_running_loop().time() - kept.at > _FRESH:
            return None
        try:
            (raw,) = await kept.reply
        except StoreError:
            return None  # whoever asks again is told
        return raw if raw[:3] != b"*0\r" else None

    def clear(self) -> None:
        """The servers may be others now."""
        self._kept.clear()


def _look_at(reply: "asyncio.Task[list[Buffer]]") -> None:
    if not reply.cancelled():
        reply.exception()  # nobody may ever ask
