"""The Redis store: the verbs of `Store` over streams (the layouts: stream/entries.py, stream/batches.py).

korvet:orders:0              the stream of the log `orders:0`
{korvet:orders:0}:@state     a hash beside it: who acquired it last, where it ends (stream/scripts.py)
korvet:@registry…            keys and values (registry.py)
"""

import asyncio
from collections.abc import Callable
from functools import partial

from korvet_fast._native import encode_commands, parse_reply
from korvet_fast.errors import Errors, KorvetError
from korvet_fast.store.interface import OpenedLog
from korvet_fast.store.redis.connection.calls import IdempotentCalls
from korvet_fast.store.redis.connection.topology import Topology
from korvet_fast.store.redis.connection.url import RedisUrl
from korvet_fast.store.redis.durability.sync import Durability
from korvet_fast.store.redis.log.acquire import acquire
from korvet_fast.store.redis.log.bounds import read_bounds
from korvet_fast.store.redis.log.log import FencingTokens, Log
from korvet_fast.store.redis.log.mirror import Mirror
from korvet_fast.store.redis.log.packed_log import pack_if_idle, unpack_log, unpacked
from korvet_fast.store.redis.log.producer_headers import RedisProducerHeaders, remove_forgotten
from korvet_fast.store.redis.log.reader import Reader
from korvet_fast.store.redis.log.retention import Retention
from korvet_fast.store.redis.log.stream_listener import StreamListener
from korvet_fast.store.redis.log.writer import Writer
from korvet_fast.store.redis.registry import Registry
from korvet_fast.store.redis.schema import claim_schema
from korvet_fast.store.types import (
    BATCHES,
    ENTRIES,
    WHOLE,
    Bounds,
    CompareAndSet,
    LeadershipGrant,
    LogFormat,
    ReadResult,
    Spent,
    StoreTimes,
)

_AT_ONCE = 256  # logs that are looked at in one turn of the loop
_PACKED_AT_ONCE = 32 << 10  # bytes: about a millisecond


class RedisStore:
    """A `Store` in Redis. Durable means what a log's level asks for and the server can give (durability/)."""

    layouts: tuple[str, ...] = (ENTRIES, BATCHES)
    syncs = False
    plain_files = processes = None

    def __init__(self, url: RedisUrl) -> None:
        self.url = url
        self.shared = self.groups = self
        self._logs: dict[str, Log] = {}
        self.producers = RedisProducerHeaders(self._logs)
        self._listeners: list[Callable[[str], None]] = []
        self._fencing_tokens = FencingTokens()
        self._times = StoreTimes(round_trips=Spent(), syncs=Spent())

    def on_data_loss(self, lost: Callable[[str], None]) -> None:
        """See `SharedStore.on_data_loss`."""
        self._listeners.append(lost)

    async def open(self) -> None:
        """See `Store.open`.

        Raises `StoreError` too if the server might lose whole logs (eviction), or a newer version wrote there.
        """
        self._topology = Topology(self.url)
        self.durability = Durability(self._topology)
        self._times = StoreTimes(round_trips=self._topology.round_trips, syncs=self.durability.rounds)
        self._calls = IdempotentCalls(self._topology)
        self._registry = Registry(self._topology)
        self._reader = Reader(self._calls)
        self._retention = Retention(self._calls, self._reader)
        self._writer = Writer(self._topology, self.durability, self._calls, self._fencing_tokens)
        self._stream_listener = StreamListener(self._topology)
        self._mirror = Mirror(self._calls)
        self._topology.on_history_change(self._on_data_loss)
        try:
            await self._topology.open()
            await self.durability.open()
            await claim_schema(self._registry)
        except BaseException:
            await self.durability.close()
            await self._topology.close()
            raise

    async def close(self) -> None:
        """See `Store.close`: waits for the appends under way."""
        waiting = [
            transaction.durable
            for log in self._logs.values()
            for transaction in (*log.awaiting_durable, *log.transactions)
        ]
        if waiting:
            await asyncio.wait(waiting)
        self.abort_appends()
        await self._stream_listener.close()
        await self._mirror.close()
        await self.durability.close()
        await self._topology.close()

    def abort_appends(self) -> None:
        """End every append with an error: nothing more is sent, nobody waits."""
        for log in self._logs.values():
            unpack_log(log)
            self._writer.recovery.abort(log, "the store is closed")
        self._logs.clear()

    def _on_data_loss(self, sentence: str) -> None:
        for log in self._logs.values():
            unpack_log(log)
            log.reach = max(log.reach, log.end)
            self._writer.recovery.abort(log, sentence)
        self._stream_listener.begin_anew()
        for lost in self._listeners:
            lost(sentence)

    # -- acquiring logs ------------------------------------------------------------------------------------------

    def declare(self, log: str, log_format: LogFormat) -> None:
        """See `SharedStore.declare`."""
        known = self._logs.get(log)
        if known is None:
            self._logs[log] = Log(log, self.url.namespace, log_format)
        elif known.log_format.entries_layout == log_format.entries_layout:
            known.log_format = known.log_format._replace(compression=log_format.compression)
        else:
            known.lay_out(log_format)

    async def acquire(
        self, log: str, log_format: LogFormat, *, epoch: int, floor: int, durable: int = 0
    ) -> LeadershipGrant:
        """See `SharedStore.acquire`."""
        state = self._logs.get(log)
        if state is None:
            state = self._logs[log] = Log(log, self.url.namespace, log_format)
        while state.transactions or state.failure is not None:
            await asyncio.wait([transaction.stored for transaction in state.transactions])
        with unpacked(state):
            state.lay_out(log_format)
            await self.durability.check(state.key)
            return await acquire(self._calls, self._fencing_tokens, state, epoch, floor, durable)

    async def is_leader(self, log: str) -> bool:
        """See `SharedStore.is_leader`."""
        state = self._logs.get(log)
        if state is None or not state.is_acquired:
            return False
        with unpacked(state):
            before = state.fencing_token
            (raw,) = await self._calls.ask(state.key, encode_commands([["HGET", state.state_key, "fence"]]))
            # The log may have got another token meanwhile.
            return parse_reply(raw) in (before.encode(), state.fencing_token.encode())

    def notify(
        self, log: str, end: int, on_append: Callable[[], None], wanted: Callable[[], bool] | None = None
    ) -> Callable[[], None]:
        """See `SharedStore.notify`."""
        state = self._logs.get(log)
        return self._stream_listener.notify(state, end, on_append, wanted) if state is not None else _nothing

    # -- records -------------------------------------------------------------------------------------------------

    def read_times(self) -> StoreTimes:
        """See `Store.read_times`."""
        return self._times

    def durability_error(self, log: str | None, sync: bool, copies: int) -> str | None:
        """See `LogStore.durability_error`."""
        key = None if log is None else f"{self.url.namespace}:{log}"
        return self.durability.durability_error(key, sync, copies) or None

    def open_log(self, log: str) -> OpenedLog:
        """See `LogStore.open_log`."""
        state = self._logs.get(log)
        if state is None:
            state = self._logs[log] = Log(log, self.url.namespace, WHOLE)
        return OpenedLog(partial(self._writer.append, state), partial(self._reader.read, state))

    async def bounds(self, log: str) -> Bounds:
        """See `LogStore.bounds`."""
        state = self._logs.get(log)
        if state is None:
            return Bounds(0, 0, 0, 0)
        with unpacked(state):
            return await read_bounds(self._calls, state)

    async def find_time(self, log: str, ms: int, start: int = 0) -> ReadResult:
        """See `LogStore.find_time`."""
        state = self._logs.get(log)
        if state is None:
            return ReadResult([], start)
        with unpacked(state):
            return await self._reader.find_time(state, ms, start)

    async def truncate(self, log: str, end: int) -> Bounds:
        """See `LogStore.truncate`. Raises `KorvetError` INVALID_REQUEST."""
        reason = "Redis gives no id out twice, so the end of a log cannot be taken away"
        raise KorvetError(Errors.INVALID_REQUEST, reason)

    async def delete_records(self, log: str, start: int) -> Bounds:
        """See `LogStore.delete_records`."""
        state = self._logs.get(log)
        if state is None:
            if start:
                raise KorvetError(Errors.OFFSET_OUT_OF_RANGE, f"{log} is empty")
            return Bounds(0, 0, 0, 0)
        async with state.retention_lock:
            with unpacked(state):
                return await self._retention.delete_records(state, await read_bounds(self._calls, state), start)

    async def apply_retention(
        self, log: str, *, older_than: int | None = None, larger_than: int | None = None
    ) -> Bounds:
        """See `LogStore.apply_retention`."""
        state = self._logs.get(log)
        if state is None:
            return Bounds(0, 0, 0, 0)
        async with state.retention_lock:
            with unpacked(state):
                bounds = await read_bounds(self._calls, state)
                if older_than is None and larger_than is None:
                    return bounds
                return await self._retention.apply_retention(state, bounds, older_than, larger_than)

    async def close_idle(self, wanted: Callable[[str], bool] | None = None) -> None:
        """See `LogStore.close_idle`: logs are packed.

        Forgotten headers of producers are removed from Redis, if no append does that. A log that is not wanted is
        forgotten with all it knows. An append whose outcome is unknown goes with the stream, whose removal comes later.
        """
        packed = 0  # bytes in this turn
        for number, log in enumerate(list(self._logs.values())):
            if wanted is not None and not wanted(log.name):
                if not log.is_busy and self._logs.get(log.name) is log:
                    del self._logs[log.name]
                    log.drop()
            else:
                if log.forgotten:
                    await remove_forgotten(self._calls, log)
                packed += pack_if_idle(log)
            if packed > _PACKED_AT_ONCE or not number % _AT_ONCE:
                packed = 0
                await asyncio.sleep(0)

    async def drop(self, log: str) -> None:
        """See `LogStore.drop`."""
        state = self._logs.pop(log, None) or Log(log, self.url.namespace, WHOLE)
        state.drop()
        self._writer.recovery.abort(state, f"{log} was dropped")
        await self._calls.ask(state.key, encode_commands([["UNLINK", state.key, state.state_key]]))

    def mirror_offset(self, log: str, group: str, offset: int | None) -> None:
        """See `GroupOffsetMirror.mirror_offset`: in `XINFO GROUPS`."""
        state = self._logs.get(log)
        if state is not None:
            self._mirror.mirror_offset(state, group, offset)

    # -- keys ----------------------------------------------------------------------------------------------------

    async def load(self, key: str) -> bytes | None:
        """See `KeyStore.load`."""
        return await self._registry.load(key)

    async def save(self, key: str, value: bytes | None, expected: bytes | None, *others: CompareAndSet) -> bool:
        """See `KeyStore.save`."""
        return await self._registry.save(key, value, expected, *others)

    async def scan(self, prefix: str) -> dict[str, bytes]:
        """See `KeyStore.scan`."""
        return await self._registry.scan(prefix)

    async def version(self, prefix: str) -> int:
        """See `SharedStore.version`."""
        return await self._registry.version(prefix)


def _nothing() -> None:
    """Ends a `notify` that never began."""
