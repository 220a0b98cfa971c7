"""Tells when other programs add entries to a stream: one connection waits in XREAD BLOCK for all streams.

In a Cluster a command cannot name keys of several slots, and a blocked connection waits for one command. So there the
streams of a master are asked for what is new, some at a time, over the connection that appends use. Own appends are
seen too, and are passed over.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import Any

from korvet_fast._native import ReplyError, encode_commands, parse_reply
from korvet_fast.errors import StoreError
from korvet_fast.store.redis.background import begin
from korvet_fast.store.redis.connection.pipeline import Asking, Pipeline
from korvet_fast.store.redis.connection.topology import Topology
from korvet_fast.store.redis.connection.url import RedisAddress
from korvet_fast.store.redis.log.log import Log
from korvet_fast.store.redis.stream.ids import find_offset, pack_id

_BLOCK = 10  # seconds that an XREAD waits before it is sent anew
_CALM = 0.02  # seconds before it is sent anew, so that busy streams do not keep it busy
_AGAIN = 0.5  # seconds before another attempt where the server cannot be asked
_ASKED = 250  # streams of a master of a Cluster that are asked at once, and
_PAUSE = 0.03  # seconds more until the next are
_NOTHING = b"*-1\r\n"  # an XREAD's answer where there is nothing

_logger = logging.getLogger(__name__)


class _Subscription:
    """Calls `on_append` once: when an entry at or above `end` was added, or when `wanted` says no."""

    __slots__ = ("end", "listener", "log", "on_append", "wanted")

    def __init__(self, log: Log, end: int, on_append: Callable[[], None], wanted: Callable[[], bool] | None) -> None:
        self.log = log
        self.end = end
        self.on_append = on_append
        self.wanted = wanted
        self.listener: _MasterListener | None = None


class StreamListener:
    """Follows the streams of a store."""

    def __init__(self, topology: Topology) -> None:
        self._topology = topology
        self._listeners: dict[RedisAddress | None, _MasterListener] = {}  # by master in a Cluster

    def notify(
        self, log: Log, end: int, on_append: Callable[[], None], wanted: Callable[[], bool] | None
    ) -> Callable[[], None]:
        """See `SharedStore.notify`. Other programs' entries are no records in the layout `batches`: nothing to tell."""
        if not log.log_format.entries_layout:
            return lambda: None
        subscription = _Subscription(log, end, on_append, wanted)
        self._place(subscription)
        return lambda: subscription.listener.remove(subscription) if subscription.listener is not None else None

    def _place(self, subscription: _Subscription) -> None:
        """Give it to the listener of the master that has its stream."""
        cluster = self._topology.url.cluster
        master = self._topology.master(subscription.log.key) if cluster else None
        listener = self._listeners.get(master)
        if listener is None:
            listener = self._listeners[master] = (
                _ClusterListener(self._topology, self._place) if cluster else _MasterListener(self._topology)
            )
        listener.add(subscription)

    def begin_anew(self) -> None:
        """Connect again: the servers may have changed."""
        for listener in self._listeners.values():
            listener.disconnect("the server's history broke")

    async def close(self) -> None:
        """Close all connections; no callback is called from now on."""
        listeners, self._listeners = self._listeners, {}
        for listener in listeners.values():
            await listener.close()


class _MasterListener:
    """One connection that waits in XREAD, and its subscriptions. It is closed when there are none."""

    def __init__(self, topology: Topology) -> None:
        self._topology = topology
        self._loop = asyncio.get_running_loop()
        self._subscriptions: dict[str, list[_Subscription]] = {}  # by key
        self._pipeline: Pipeline | None = None
        self._client = 0  # the connection's number at the server
        self._armed: dict[str, int] = {}  # the keys that the XREAD under way waits for, and from which offset on
        self._timer: asyncio.TimerHandle | None = None
        self._working: asyncio.Task[None] | None = None
        self._idle: asyncio.TimerHandle | None = None  # ends the connection
        self._sorted = self._loop.time()  # when unwanted subscriptions were dropped last

    def add(self, subscription: _Subscription) -> None:
        """Listen for entries of this stream too, from the next XREAD on."""
        key = subscription.log.key
        subscription.listener = self
        self._subscriptions.setdefault(key, []).append(subscription)
        if self._working is None or self._working.done():
            self._stop_timers()
            self._working = begin(self._work())
        else:
            self._interrupt_soon(key, subscription.end)

    def _interrupt_soon(self, key: str, end: int) -> None:
        if self._armed and self._armed.get(key, end + 1) > end and self._timer is None:
            self._timer = self._loop.call_later(_CALM, self._interrupt)

    def remove(self, subscription: _Subscription) -> None:
        """Forget a subscription; the next XREAD leaves its stream out if nobody else has subscribed."""
        subscriptions = self._subscriptions.get(subscription.log.key, [])
        if subscription in subscriptions:
            subscriptions.remove(subscription)
            if not subscriptions:
                del self._subscriptions[subscription.log.key]

    def disconnect(self, why: str) -> None:
        """End the connection; another is made."""
        if self._pipeline is not None:
            self._pipeline.close(why)
            self._pipeline = None

    async def close(self) -> None:
        """End everything."""
        self._subscriptions.clear()
        self.disconnect("the store is closed")
        self._stop_timers()
        if self._working is not None:
            self._working.cancel()
            await asyncio.wait([self._working])

    def _stop_timers(self) -> None:
        for timer in (self._timer, self._idle):
            if timer is not None:
                timer.cancel()
        self._timer = self._idle = None

    def _interrupt(self) -> None:
        """Let the XREAD under way return, so that it is sent anew for all streams with subscriptions."""
        self._timer = None
        if not self._armed:
            return
        try:
            pipeline = self._topology.pipeline(next(iter(self._armed)))
            pipeline.send(encode_commands([["CLIENT", "UNBLOCK", self._client]])).add_done_callback(
                lambda ended: ended.exception()
            )
        except StoreError as error:
            self.disconnect(error.detail)

    async def _work(self) -> None:
        while True:
            await asyncio.sleep(_CALM)
            self._remove_unwanted()
            if not self._subscriptions:
                self._idle = self._loop.call_later(_BLOCK, self.disconnect, "nobody waits for other programs' records")
                return
            self._armed = {key: min(map(_begin, subscriptions)) for key, subscriptions in self._subscriptions.items()}
            try:
                news = await self._wait_for_entries(self._armed)
            except StoreError as error:
                _logger.debug("waiting for other programs' records: %s", error.detail)
                await asyncio.sleep(_AGAIN)
                continue
            finally:
                self._armed = {}
            for subscription in list(self._pick(news)):
                self.remove(subscription)
                subscription.on_append()

    def _remove_unwanted(self) -> None:
        """Now and then, drop the subscriptions that are not wanted any more; their owners may subscribe again."""
        if self._loop.time() - self._sorted < _BLOCK:
            return
        self._sorted = self._loop.time()
        for subscription in list(chain.from_iterable(self._subscriptions.values())):
            if subscription.wanted is not None and not subscription.wanted():
                self.remove(subscription)
                subscription.on_append()

    def _pack_ids(self, keys: Iterable[str], armed: dict[str, int]) -> list[str]:
        bits = {key: self._subscriptions[key][0].log.log_format.bits for key in keys}
        return [pack_id(armed[key] - 1, bits[key]) if armed[key] else "0-0" for key in keys]

    async def _wait_for_entries(self, armed: dict[str, int]) -> Any:
        """The answer to an XREAD of these streams: None if there was nothing. Raises `StoreError`."""
        key = next(iter(armed))
        # Before the first wait: subscriptions may end meanwhile.
        ids = self._pack_ids(armed, armed)
        pipeline = self._pipeline
        if pipeline is None or not pipeline.up:
            pipeline = self._pipeline = await self._topology.connect(self._topology.master(key), _BLOCK)
            (raw,) = await pipeline.send(encode_commands([["CLIENT", "ID"]]))
            self._client = parse_reply(raw)
        (raw,) = await pipeline.send(
            encode_commands([["XREAD", "COUNT", 1, "BLOCK", int(_BLOCK * 1000), "STREAMS", *armed, *ids]])
        )
        news = parse_reply(raw)
        if isinstance(news, ReplyError):
            self.disconnect(news.message)
            await self._topology.repair(key, news.message)
            raise StoreError(news.message)
        return news

    def _pick(self, news: Any) -> Iterator[_Subscription]:
        """The subscriptions whose streams have new entries."""
        for name, entries in news or ():
            for subscription in self._subscriptions.get(name.decode(), ()):
                at = find_offset(entries[0][0], subscription.log.log_format.bits)
                if at >= _begin(subscription):
                    yield subscription


def _begin(subscription: _Subscription) -> int:
    """The offset from which on entries are new: this broker appended those below its own end, or has read them."""
    subscription.end = max(subscription.end, subscription.log.end if subscription.log.fencing_token else 0)
    return subscription.end


class _ClusterListener(_MasterListener):
    """Listens to streams of one master of a Cluster; the streams may go to another master."""

    def __init__(self, topology: Topology, place: Callable[[_Subscription], None]) -> None:
        super().__init__(topology)
        self._place = place
        self._rest: list[str] = []  # keys that this turn has not asked for yet
        self._failure: tuple[str, str] | None = None  # with a key, and why

    def _interrupt_soon(self, key: str, end: int) -> None:
        """No interruption is needed: the stream is asked for soon."""

    async def _wait_for_entries(self, armed: dict[str, int]) -> Any:
        """As `_MasterListener._wait_for_entries`, of some of these."""
        if self._failure is not None:
            await self._repair(*self._failure)
            armed = {key: end for key, end in armed.items() if key in self._subscriptions}  # others moved
        self._rest = [key for key in self._rest if key in armed] or [*armed]
        keys, self._rest = self._rest[:_ASKED], self._rest[_ASKED:]
        ids = dict(zip(keys, self._pack_ids(keys, armed), strict=True))
        await asyncio.sleep(_PAUSE)
        pipelines: dict[Pipeline | Asking, list[str]] = {}
        for key in keys:
            try:
                pipelines.setdefault(self._topology.pipeline(key), []).append(key)
            except StoreError as error:
                self._failure = key, error.detail
        found = await asyncio.gather(*(self._ask(pipeline, names, ids) for pipeline, names in pipelines.items()))
        return [each for news in found for each in news]

    async def _ask(self, pipeline: Pipeline | Asking, names: list[str], ids: dict[str, str]) -> list[Any]:
        """The answers to an XREAD of each stream, without those that are empty or a failure."""
        commands: list[list[str | int]] = [["XREAD", "COUNT", 1, "STREAMS", name, ids[name]] for name in names]
        try:
            rows = await pipeline.send(encode_commands(commands), len(commands))
        except StoreError as error:
            self._failure = names[0], error.detail
            return []
        news: list[Any] = []
        for name, raw in zip(names, rows, strict=True):
            if raw != _NOTHING:
                answer = parse_reply(raw)
                if isinstance(answer, ReplyError):
                    self._failure = name, answer.message
                else:
                    news += answer
        return news

    async def _repair(self, key: str, why: str) -> None:
        """Wait until the key can be asked for, and let everybody wait where the streams are now."""
        self._failure = None
        await self._topology.repair(key, why)
        subscriptions, self._subscriptions = (
            list(chain.from_iterable(self._subscriptions.values())),
            {},
        )
        for subscription in subscriptions:
            self._place(subscription)
