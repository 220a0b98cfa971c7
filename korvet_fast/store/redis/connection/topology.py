"""The connections to all masters: which one has a key, made again when lost, and watched for a change of history.

A task looks once a second whether every master is still the one it was. A caller that meets an error calls `repair`.
"""

import asyncio
import logging
import ssl
from collections.abc import Callable
from typing import Any

from redis.crc import key_slot

from korvet_fast._native import ReplyError, encode_commands, parse_reply
from korvet_fast.errors import SettingError, StoreError
from korvet_fast.store.redis.background import begin
from korvet_fast.store.redis.connection.clients import Clients
from korvet_fast.store.redis.connection.connect import connect, make_context
from korvet_fast.store.redis.connection.discovery import SLOTS, Shard, find_masters
from korvet_fast.store.redis.connection.pipeline import Asking, Pipeline, PipelineDown
from korvet_fast.store.redis.connection.replication_history import (
    ReplicationHistory,
    compare,
    read_info,
    read_replication_history,
)
from korvet_fast.store.redis.connection.url import RedisAddress, RedisUrl
from korvet_fast.store.types import Spent

WATCH = 1.0  # seconds between two looks at the masters
REPAIR = 20.0  # seconds within which a connection must be back
FIRST_WAIT, LONGEST_WAIT = 0.02, 0.5  # seconds between two attempts

_INFO = encode_commands([["INFO", "server", "replication", "persistence"]])
# Errors of a server that is there and cannot serve the command just now.
_WAIT = ("TRYAGAIN", "CLUSTERDOWN", "LOADING", "BUSY", "MASTERDOWN", "READONLY")
# Errors after which the masters must have been looked for once more.
_REFRESH_AFTER = ("CLUSTERDOWN", "LOADING", "MASTERDOWN", "READONLY", "MOVED")

log = logging.getLogger(__name__)


def is_retriable(error: str) -> bool:
    """Whether a command that got this error reply may succeed when it is sent again, after `Topology.repair`."""
    return error.partition(" ")[0] in (*_WAIT, "MOVED", "ASK")


class Topology:
    """All masters of a Redis. `generation` rises whenever written data may be gone.

    `round_trips`: those of the pipelines that all callers share.
    """

    def __init__(self, url: RedisUrl) -> None:
        self.url = url
        self.generation = 0
        self.round_trips = Spent()
        self._clients = Clients(url)
        self._listeners: list[Callable[[str], None]] = []
        self._context: ssl.SSLContext | None = None
        self._shards: list[Shard] = []
        self._slots: list[RedisAddress] = []  # by slot; empty outside of a Cluster
        self._pipelines: dict[RedisAddress, Pipeline] = {}
        self._known: dict[RedisAddress, ReplicationHistory] = {}
        self._asking: dict[str, RedisAddress] = {}  # keys that have moved to a node that does not own their slot yet
        self._hint: RedisAddress | None = None  # the node that a redirection named: it is asked first
        self._errors: dict[RedisAddress, str] = {}  # why a master has no pipeline
        self._closed = False
        self._refreshing: asyncio.Task[str] | None = None
        self._watching: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """Connect to all masters. Raises `StoreError`."""
        try:
            self._context = make_context(self.url.tls) if self.url.tls else None
        except SettingError as error:
            raise StoreError(str(error)) from None
        why = await self._discover() or "; ".join(self._errors.values())
        if why:
            await self.close()
            raise StoreError(why)
        self._watching = begin(self._watch())

    async def close(self) -> None:
        """Hang up. Calls and repairs under way fail."""
        self._closed = True
        tasks = [task for task in (self._watching, self._refreshing) if task is not None]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        for pipeline in self._pipelines.values():
            pipeline.close("the store is closed")
        self._pipelines.clear()
        await self._clients.close()

    def on_history_change(self, changed: Callable[[str], None]) -> None:
        """`changed` is told, in a sentence, when `generation` has risen; before a new connection can be used."""
        self._listeners.append(changed)

    def break_history(self, why: str) -> None:
        """Written data may be gone: raise `generation`, and tell the listeners why, in a sentence."""
        self.generation += 1
        for changed in self._listeners:
            changed(why)

    def masters(self) -> list[RedisAddress]:
        """All masters, connected or not."""
        return [shard.master for shard in self._shards]

    def master(self, key: str) -> RedisAddress:
        """The server that has a key, as far as is known. Raises `PipelineDown`."""
        if self._slots:
            return self._slots[key_slot(key.encode())]
        if not self._shards:
            raise PipelineDown(f"{self.url} is not open")
        return self._shards[0].master

    def replication_history(self, master: RedisAddress) -> ReplicationHistory | None:
        """The history that a master was last seen with."""
        return self._known.get(master)

    def pipeline(self, key: str) -> Pipeline | Asking:
        """The connection to the server that has a key. Raises `PipelineDown`."""
        if self._asking and key in self._asking:
            asked = self._pipelines.get(self._asking[key])
            if asked is not None and asked.up:
                return Asking(asked)
        master = self.master(key)
        pipeline = self._pipelines.get(master)
        if pipeline is None:
            raise PipelineDown(self._errors.get(master, f"{master} is not connected"))
        if not pipeline.up:
            raise PipelineDown(pipeline.why)
        return pipeline

    def push(self) -> None:
        """Have everything that was given to pipelines sent now."""
        for pipeline in self._pipelines.values():
            pipeline.push()

    async def connect(self, master: RedisAddress, patience: float = 0.0) -> Pipeline:
        """Another connection to a master, which the caller closes. `patience` as `connect.connect`. `PipelineDown`."""
        return await connect(self.url, master, self._context, patience)

    async def call(self, master: RedisAddress, *command: bytes | str | int) -> Any:
        """A slow command, over a connection of its own, sent once. The reply as RESP2 has it: bytes, int, list, None.

        Raises `StoreError`; `CommandError`, which is one, for an error reply.
        """
        return await self._clients.call(master, *command)

    async def repair(self, key: str, error: str, within: float = REPAIR) -> None:
        """After a loss, or an error reply of this text: wait until `key` has a pipeline on which to try again.

        Raises `StoreError` if that takes longer than `within` seconds.
        """
        loop = asyncio.get_running_loop()
        deadline = loop.time() + within
        word = error.partition(" ")[0]
        self._note(key, word, error)
        if word in _WAIT:
            await asyncio.sleep(FIRST_WAIT)
        refreshed, why, failure = word not in _REFRESH_AFTER, error, ""
        wait = 0.0
        while True:
            if refreshed:
                why = self._reach(key, word)
                if not why:
                    return
            await asyncio.sleep(min(wait, max(deadline - loop.time(), 0)))
            wait = min(2 * wait or FIRST_WAIT, LONGEST_WAIT)
            left = deadline - loop.time()
            if left <= 0:
                raise StoreError("; ".join(filter(None, (why, failure, f"waited {within:.3g} s for it"))))
            found = await self._refresh(left)
            refreshed = refreshed or found == ""
            failure = failure if found is None else found

    def _note(self, key: str, word: str, error: str) -> None:
        """Learn the owner of a slot from an error reply, if the reply is a redirection."""
        self._asking.pop(key, None)
        if word not in ("MOVED", "ASK"):
            return
        slot, address = error.split()[1:3]
        host, _, port = address.rpartition(":")
        endpoint = RedisAddress(host.strip("[]") or self.master(key).host, int(port))
        if word == "ASK":
            self._asking[key] = endpoint
        elif self._slots:
            self._slots[int(slot)] = self._hint = endpoint

    def _reach(self, key: str, word: str) -> str:
        """Why `key` has no pipeline, "" if it has."""
        try:
            pipeline = self.pipeline(key)
            if word == "ASK" and not pipeline.asking:
                return f"{self._asking[key]} is not connected"
        except StoreError as error:
            return error.detail
        return ""

    async def _watch(self) -> None:
        told = ""
        while True:
            await asyncio.sleep(WATCH)
            why = await self._refresh(None) or "; ".join(self._errors.values())
            if why and why != told:
                log.warning("%s", why)
            if told and not why:
                log.info("%s: connected again", self.url)
            told = why

    async def _refresh(self, within: float | None) -> str | None:
        """Look for the masters; calls that come meanwhile share one search.

        Returns why they were not found, "" if they were; None if that is not known after `within` seconds.
        """
        running = self._refreshing
        if running is not None and not running.done():
            # The refresh under way began before this call: its view may be older than what the caller knows.
            await asyncio.wait([running], timeout=within)
            if not running.done():
                return None
        if self._closed:
            raise StoreError("the store is closed")
        if self._refreshing is running:
            self._refreshing = begin(self._discover())
        looking = self._refreshing
        assert looking is not None
        done, _ = await asyncio.wait([looking], timeout=within)
        return looking.result() if done and not looking.cancelled() else None

    async def _discover(self) -> str:
        """Find the masters, connect to new ones, compare their histories. Returns why that failed, or ""."""
        first = [] if self._hint is None else [self._hint]
        failure = ""
        try:
            shards = await find_masters(self.url, self._clients, [*first, *self._pipelines])
        except StoreError as error:
            failure = error.detail
            # A node of a Cluster knows itself whether it may serve; a master must be named by Sentinels.
            shards = self._shards if self.url.cluster else []
            if not shards:
                return failure
        else:
            self._hint = None
        wanted = dict.fromkeys([*(shard.master for shard in shards), *self._asking.values()])
        found = await asyncio.gather(*map(self._examine, wanted))
        self._adopt(shards, dict(zip(wanted, found, strict=True)))
        return failure

    async def _examine(self, endpoint: RedisAddress) -> tuple[Pipeline, ReplicationHistory] | str:
        """A master's pipeline, made if there is none, and its history; or why it cannot be used."""
        for pipeline in (self._pipelines.get(endpoint), None):
            if pipeline is not None and not pipeline.up:
                continue
            try:
                there = pipeline or await connect(self.url, endpoint, self._context, round_trips=self.round_trips)
                replication_history = await identify(there)
            except StoreError as error:
                if pipeline is None:
                    return error.detail
                continue
            if replication_history.master and not replication_history.loading:
                return there, replication_history
            there.close(f"{endpoint} is {'loading its data' if replication_history.loading else self._replica()}")
            return there.why
        raise AssertionError("the second turn returns")

    def _replica(self) -> str:
        """The words for a server that is a replica: a URL without Sentinels or Cluster has to name the master."""
        if self.url.sentinel or self.url.cluster:
            return "a replica"
        return "a replica; name its master, or let Sentinels find it: redis+sentinel://HOST,HOST/NAME"

    def _adopt(
        self, shards: list[Shard], found: dict[RedisAddress, "tuple[Pipeline, ReplicationHistory] | str"]
    ) -> None:
        """Use the masters that were found. Listeners hear of a new history before a new connection can be used."""
        masters = {shard.master for shard in shards}
        pipelines = {place: each[0] for place, each in found.items() if not isinstance(each, str)}
        now = {place: each[1] for place, each in found.items() if not isinstance(each, str) and place in masters}
        told = compare(self._known, now, self._known.keys() - masters)
        self._known = {place: self._known[place] for place in self._known.keys() & masters} | now
        self._errors = {place: each for place, each in found.items() if isinstance(each, str)}
        self._shards = shards
        self._slots = _by_slot(shards) if self.url.cluster else []
        self._asking = {key: place for key, place in self._asking.items() if self.master(key) != place}
        for place, pipeline in self._pipelines.items():
            if pipelines.get(place) is not pipeline:
                pipeline.close(f"{place} is no master any more")
        if told:
            self.break_history(told)
        self._pipelines = pipelines


async def identify(pipeline: Pipeline) -> ReplicationHistory:
    """The history of the data at a pipeline's other end. Raises `StoreError`."""
    try:
        (raw,) = await pipeline.send(_INFO)
    except asyncio.CancelledError:  # the topology is closed, and might not know this pipeline yet
        pipeline.close("the store is closed")
        raise
    text = parse_reply(raw)
    if isinstance(text, ReplyError):
        pipeline.close(f"{pipeline.name} refuses INFO: {text.message}")
        raise PipelineDown(pipeline.why)
    return read_replication_history(read_info(text))


def _by_slot(shards: list[Shard]) -> list[RedisAddress]:
    slots = [shards[0].master] * SLOTS
    for shard in shards:
        for first, last in shard.slots:
            slots[first : last + 1] = [shard.master] * (last + 1 - first)
    return slots
