"""Being told when other programs put something into a stream: a connection that waits in XREAD BLOCK for all of them.

In a Cluster each slot has one, as a command cannot name keys of several. Own appends wake it too, and are passed over.
"""

import asyncio
import logging
from collections.abc import Callable, Iterator
from typing import Any

from redis.crc import key_slot

from korvet_fast._native import ReplyError, pack, reply
from korvet_fast.errors import StoreError
from korvet_fast.store.redis.background import begin
from korvet_fast.store.redis.ids import find_offset, pack_id
from korvet_fast.store.redis.lane import Lane
from korvet_fast.store.redis.log import Log
from korvet_fast.store.redis.topology import Topology

_BLOCK = 10  # seconds that an XREAD waits before it is sent anew
_CALM = 0.02  # seconds before it is sent anew, so that busy streams do not keep it busy
_AGAIN = 0.5  # seconds before another attempt where the server cannot be asked

_logger = logging.getLogger(__name__)


class _Watch:
    """Somebody who is to be told once of what comes at or above `end`."""

    __slots__ = ("end", "grown", "log")

    def __init__(self, log: Log, end: int, grown: Callable[[], None]) -> None:
        self.log = log
        self.end = end
        self.grown = grown


class Follower:
    """Follows the streams of a store."""

    def __init__(self, topology: Topology) -> None:
        self._topology = topology
        self._ears: dict[int, _Ear] = {}

    def follow(self, log: Log, end: int, grown: Callable[[], None]) -> Callable[[], None]:
        """See `Store.follow`. Other programs' entries are no records in the layout `batches`: nothing to tell."""
        watch = _Watch(log, end, grown)
        if not log.form.single:
            return lambda: None
        slot = key_slot(log.key.encode()) if self._topology.url.cluster else -1
        ear = self._ears.get(slot)
        if ear is None:
            ear = self._ears[slot] = _Ear(self._topology)
        ear.add(watch)
        return lambda: ear.remove(watch)

    def begin_anew(self) -> None:
        """The servers may be others now."""
        for ear in self._ears.values():
            ear.hang_up("the server's history broke")

    async def close(self) -> None:
        """Nobody is told anything any more."""
        ears, self._ears = self._ears, {}
        for ear in ears.values():
            await ear.close()


class _Ear:
    """One connection, and those who wait for what it hears."""

    def __init__(self, topology: Topology) -> None:
        self._topology = topology
        self._loop = asyncio.get_running_loop()
        self._watches: dict[str, list[_Watch]] = {}  # by key
        self._lane: Lane | None = None
        self._client = 0  # the connection's number at the server
        self._armed: dict[str, int] = {}  # what the XREAD under way waits for: keys, from which offset on
        self._timer: asyncio.TimerHandle | None = None
        self._working: asyncio.Task[None] | None = None

    def add(self, watch: _Watch) -> None:
        """From now on, soon."""
        key = watch.log.key
        self._watches.setdefault(key, []).append(watch)
        if self._working is None or self._working.done():
            self._working = begin(self._work())
        elif self._armed and self._armed.get(key, watch.end + 1) > watch.end and self._timer is None:
            self._timer = self._loop.call_later(_CALM, self._interrupt)

    def remove(self, watch: _Watch) -> None:
        """No more; a stream that is waited for in vain is left out the next time."""
        watches = self._watches.get(watch.log.key, [])
        if watch in watches:
            watches.remove(watch)
            if not watches:
                del self._watches[watch.log.key]

    def hang_up(self, why: str) -> None:
        """End the connection; another is made."""
        if self._lane is not None:
            self._lane.close(why)
            self._lane = None

    async def close(self) -> None:
        """End everything."""
        self._watches.clear()
        self.hang_up("the store is closed")
        if self._timer is not None:
            self._timer.cancel()
        if self._working is not None:
            self._working.cancel()
            await asyncio.wait([self._working])

    def _interrupt(self) -> None:
        """Let the XREAD under way return, so that it is sent anew with all there is to wait for."""
        self._timer = None
        if not self._armed:
            return
        try:
            lane = self._topology.lane(next(iter(self._armed)))
            lane.send(pack([["CLIENT", "UNBLOCK", self._client]])).add_done_callback(lambda ended: ended.exception())
        except StoreError as error:
            self.hang_up(error.detail)

    async def _work(self) -> None:
        while True:
            await asyncio.sleep(_CALM)
            if not self._watches:
                return
            self._armed = {key: min(watch.end for watch in watches) for key, watches in self._watches.items()}
            try:
                heard = await self._listen(self._armed)
            except StoreError as error:
                _logger.debug("waiting for other programs' records: %s", error.detail)
                await asyncio.sleep(_AGAIN)
                continue
            finally:
                self._armed = {}
            for watch in list(self._pick(heard)):
                self.remove(watch)
                watch.grown()

    async def _listen(self, armed: dict[str, int]) -> Any:
        """What an XREAD of these answers: None if there was nothing. Raises `StoreError`."""
        key = next(iter(armed))
        # Before anything is waited for: meanwhile those who watch may lose interest.
        bits = {name: self._watches[name][0].log.form.bits for name in armed}
        ids = [pack_id(end - 1, bits[name]) if end else "0-0" for name, end in armed.items()]
        lane = self._lane
        if lane is None or not lane.up:
            lane = self._lane = await self._topology.connect(self._topology.master(key), _BLOCK)
            (raw,) = await lane.send(pack([["CLIENT", "ID"]]))
            self._client = reply(raw)
        (raw,) = await lane.send(pack([["XREAD", "COUNT", 1, "BLOCK", _BLOCK * 1000, "STREAMS", *armed, *ids]]))
        heard = reply(raw)
        if isinstance(heard, ReplyError):
            self.hang_up(heard.message)
            await self._topology.repair(key, heard.message)
            raise StoreError(heard.message)
        return heard

    def _pick(self, heard: Any) -> Iterator[_Watch]:
        """Those who are to be told."""
        for name, entries in heard or ():
            for watch in self._watches.get(name.decode(), ()):
                at = find_offset(entries[0][0], watch.log.form.bits)
                # What is below our own end is ours, or is read with what is ours.
                watch.end = max(watch.end, watch.log.end if watch.log.fence else 0)
                if at >= watch.end:
                    yield watch
