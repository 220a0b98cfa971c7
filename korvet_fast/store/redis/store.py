"""The Redis store: the verbs of `Store` over streams (the layouts: entries.py, batches.py).

korvet:orders:0              the stream of the log `orders:0`
{korvet:orders:0}:@state     a hash beside it: whose it is, where it ends (scripts.py)
korvet:@registry…            keys and values (registry.py)
"""

import asyncio
from collections.abc import Callable, Sequence

from korvet_fast._native import pack
from korvet_fast.errors import KorvetError
from korvet_fast.store.interface import (
    BATCHES,
    ENTRIES,
    LARGE,
    WHOLE,
    Appending,
    Attached,
    Bounds,
    Change,
    Detached,
    Entry,
    Form,
    Page,
    Piece,
)
from korvet_fast.store.redis.attach import attach
from korvet_fast.store.redis.calls import Calls
from korvet_fast.store.redis.cut import Cutter
from korvet_fast.store.redis.follow import Follower
from korvet_fast.store.redis.log import Log, Marks
from korvet_fast.store.redis.mirror import Mirror
from korvet_fast.store.redis.reader import Reader
from korvet_fast.store.redis.registry import Registry
from korvet_fast.store.redis.survey import survey
from korvet_fast.store.redis.sync import Durability
from korvet_fast.store.redis.topology import Topology
from korvet_fast.store.redis.url import RedisUrl
from korvet_fast.store.redis.writer import Writer


class RedisStore:
    """A `Store` in Redis. Durable means what a log's level asks for and the server can give (durability.py)."""

    layouts: tuple[str, ...] = (ENTRIES, BATCHES)
    shared = True
    syncs = False

    def __init__(self, url: RedisUrl) -> None:
        self.url = url
        self._logs: dict[str, Log] = {}
        self._listeners: list[Callable[[str], None]] = []
        self._marks = Marks()

    def listen(self, forked: Callable[[str], None]) -> None:
        """See `Store.listen`."""
        self._listeners.append(forked)

    async def open(self) -> None:
        """See `Store.open`. Raises `StoreError` too if the server might lose whole logs (eviction)."""
        self._topology = Topology(self.url)
        self.durability = Durability(self._topology)
        self._calls = Calls(self._topology)
        self._registry = Registry(self._topology)
        self._reader = Reader(self._calls)
        self._cutter = Cutter(self._calls, self._reader)
        self._writer = Writer(self._topology, self.durability, self._calls, self._marks)
        self._follower = Follower(self._topology)
        self._mirror = Mirror(self._calls)
        self._topology.listen(self._fork)
        try:
            await self._topology.open()
            await self.durability.open()
        except BaseException:
            await self._topology.close()
            raise

    async def close(self) -> None:
        """See `Store.close`: waits for what is under way."""
        waiting = [group.durable for log in self._logs.values() for group in (*log.rounds, *log.groups)]
        if waiting:
            await asyncio.wait(waiting)
        self.let_go()
        await self._follower.close()
        await self._mirror.close()
        await self.durability.close()
        await self._topology.close()

    def let_go(self) -> None:
        """End what is under way: nothing more is sent, nobody waits."""
        for log in self._logs.values():
            self._writer.resolver.break_off(log, "the store is closed")
        self._logs.clear()

    def _fork(self, sentence: str) -> None:
        for log in self._logs.values():
            log.reach = max(log.reach, log.end)
            self._writer.resolver.break_off(log, sentence)
        self._follower.begin_anew()
        for forked in self._listeners:
            forked(sentence)

    # -- whose a log is ------------------------------------------------------------------------------------------

    def declare(self, log: str, form: Form) -> None:
        """See `Store.declare`."""
        known = self._logs.get(log)
        if known is None:
            self._logs[log] = Log(log, self.url.namespace, form)
        else:
            known.form = form

    async def attach(self, log: str, form: Form, *, epoch: int, floor: int) -> Attached:
        """See `Store.attach`."""
        state = self._logs.get(log)
        if state is None:
            state = self._logs[log] = Log(log, self.url.namespace, form)
        while state.groups or state.trouble is not None:
            await asyncio.wait([group.stored for group in state.groups])
        state.lay_out(form)
        return await attach(self._calls, self._marks, state, epoch, floor)

    def follow(self, log: str, end: int, grown: Callable[[], None]) -> Callable[[], None]:
        """See `Store.follow`."""
        state = self._logs.get(log)
        return self._follower.follow(state, end, grown) if state is not None else _nothing

    def refusal(self, log: str | None, sync: bool, copies: int) -> str | None:
        """See `Store.refusal`."""
        key = None if log is None else f"{self.url.namespace}:{log}"
        return self.durability.refusal(key, sync, copies) or None

    # -- records -------------------------------------------------------------------------------------------------

    def append(
        self, log: str, entries: Sequence[Entry], at: int, *, sync: bool, copies: int = 1, piece: Piece = LARGE
    ) -> Appending:
        """See `Store.append`. Raises `KorvetError` INVALID_RECORD too, for a record that a stream cannot hold."""
        state = self._logs.get(log)
        if state is None:
            raise Detached(f"{log} is not attached")
        return self._writer.append(state, entries, at, (sync, copies), piece)

    async def read(self, log: str, start: int, max_bytes: int, limit: int) -> Page:
        """See `Store.read`."""
        state = self._logs.get(log)
        if state is None:
            return Page([], start)
        return await self._reader.read(state, start, max_bytes, limit)

    async def bounds(self, log: str) -> Bounds:
        """See `Store.bounds`."""
        state = self._logs.get(log)
        return Bounds(0, 0, 0, 0) if state is None else await survey(self._calls, state)

    async def find_time(self, log: str, ms: int, start: int = 0) -> Page:
        """See `Store.find_time`."""
        state = self._logs.get(log)
        if state is None:
            return Page([], start)
        return await self._reader.find_time(state, ms, start)

    async def cut(
        self,
        log: str,
        *,
        start: int | None = None,
        end: int | None = None,
        older_than: int | None = None,
        larger_than: int | None = None,
    ) -> Bounds:
        """See `Store.cut`. With `end`, raises `KorvetError` INVALID_REQUEST: Redis gives no id out twice."""
        state = self._logs.get(log)
        if end is not None:
            raise KorvetError("INVALID_REQUEST", "what is at the end of a log in Redis cannot be taken away again")
        if state is None:
            if start:
                raise KorvetError("OFFSET_OUT_OF_RANGE", f"{log} is empty")
            return Bounds(0, 0, 0, 0)
        async with state.cutting:
            bounds = await survey(self._calls, state)
            if start is not None:
                bounds = await self._cutter.delete_before(state, bounds, start)
            if older_than is not None or larger_than is not None:
                bounds = await self._cutter.retire(state, bounds, older_than, larger_than)
            return bounds

    async def drop(self, log: str) -> None:
        """See `Store.drop`."""
        state = self._logs.pop(log, None) or Log(log, self.url.namespace, WHOLE)
        self._writer.resolver.break_off(state, f"{log} was dropped")
        await self._calls.ask(state.key, pack([["UNLINK", state.key, state.state_key]]))

    def show(self, log: str, group: str, offset: int | None) -> None:
        """See `Store.show`: in `XINFO GROUPS`."""
        state = self._logs.get(log)
        if state is not None:
            self._mirror.show(state, group, offset)

    # -- keys ----------------------------------------------------------------------------------------------------

    async def load(self, key: str) -> bytes | None:
        """See `Store.load`."""
        return await self._registry.load(key)

    async def save(self, key: str, value: bytes | None, expected: bytes | None, *others: Change) -> bool:
        """See `Store.save`."""
        return await self._registry.save(key, value, expected, *others)

    async def scan(self, prefix: str) -> dict[str, bytes]:
        """See `Store.scan`."""
        return await self._registry.scan(prefix)

    async def changed(self, prefix: str) -> int:
        """See `Store.changed`."""
        return await self._registry.changed(prefix)


def _nothing() -> None:
    """What ends a `follow` that never began."""
