"""Waiting until the masters keep records as promised: WAITAOF and WAIT, one round for all that wait at a time.

Both count from the last write of their own connection, so a round writes something small first (it renews the time to
live of a key, which Redis takes even when its memory is full) and covers all that the server answered before. A
round speaks for one history of the data: if the server has died or was replaced meanwhile, the round fails.
"""

import asyncio
import logging
from contextlib import suppress
from functools import partial
from time import monotonic

from korvet_fast._native import ReplyError, encode_commands, parse_reply
from korvet_fast.errors import StoreError, TooFewCopies
from korvet_fast.store.redis.background import begin
from korvet_fast.store.redis.connection.pipeline import Pipeline
from korvet_fast.store.redis.connection.replication_history import (
    ReplicationHistory,
    read_info,
    read_replication_history,
)
from korvet_fast.store.redis.connection.topology import Topology, identify
from korvet_fast.store.redis.connection.url import RedisAddress
from korvet_fast.store.redis.durability.durability import (
    Need,
    Server,
    check,
    count_replicas,
    durability_error,
    level,
    need,
    probe,
    summarise,
    unfit,
)
from korvet_fast.store.redis.durability.rights import WAITAOF, explain, find_missing
from korvet_fast.store.types import Spent

PROBE = 5.0  # seconds between two looks at what the servers can keep
PAUSE = 0.1  # seconds between two looks where one fails
PATIENCE = 10.0  # seconds that a round waits for disks and replicas
_LIVE = 86_400_000  # ms that the key written lives

log = logging.getLogger(__name__)


async def read_servers(topology: Topology) -> dict[RedisAddress, Server]:
    """The durability level that every master can keep. Raises `StoreError`."""
    servers = {}
    for master in topology.masters():
        call = partial(topology.call, master)
        missing = await find_missing(call, topology.url.namespace, cluster=topology.url.cluster)
        needed = explain([right for right in missing if right != WAITAOF], topology.url.namespace)
        servers[master] = (await probe(call))._replace(missing=needed, may_wait=WAITAOF not in missing)
    return servers


class Durability:
    """The durability that the masters of a topology can keep, and waiting for it. `rounds`: those that ended."""

    def __init__(self, topology: Topology) -> None:
        self._topology = topology
        self.rounds = Spent()
        self._servers: dict[RedisAddress, Server] = {}
        self._refreshed = asyncio.get_running_loop().create_future()  # ends with the next refresh that succeeds
        self.unfit: dict[RedisAddress, str] = {}  # masters that must not be used any more, and why
        self._full: set[RedisAddress] = set()  # masters that have reached maxmemory
        self._level = 0  # the weakest master's level, where a topic asks for no more than the server is set to
        self._queues: dict[tuple[RedisAddress, Need], _Queue] = {}
        self._due = asyncio.Event()
        self._probing: asyncio.Task[None] | None = None
        self._closed = False

    async def open(self) -> None:
        """Look at all masters. Raises `StoreError` if one must not be used (it might evict, or is too old)."""
        self._servers = await read_servers(self._topology)
        for master, server in self._servers.items():
            check(server, master)
        self._level = min(level(server, False, 1) for server in self._servers.values())
        self._tell_memory()
        self._topology.on_history_change(self._refresh_soon)
        self._probing = begin(self._keep_refreshing())

    async def close(self) -> None:
        """End all waits with `StoreError`."""
        self._closed = True
        queues, self._queues = self._queues, {}
        for queue in queues.values():
            await queue.close()
        if self._probing is not None:
            self._probing.cancel()
            await asyncio.wait([self._probing])

    def explain(self, sync: bool, copies: int) -> list[tuple[str, bool]]:
        """Failures that acks=all survives, a line for each master, and whether it survives a restart of Redis at all.

        `sync` and `copies` as for `durability_error`.
        """
        return [
            (f"{master}: {summarise(server, sync, copies)}", level(server, sync, copies) > 0)
            for master, server in self._servers.items()
        ]

    def durability_error(self, key: str | None, sync: bool, copies: int) -> str:
        """Why the master of `key` (None: any) cannot keep a write as asked now, in a sentence; "" if it can.

        `sync`: flushed. `copies`: servers that must have it, the master included.
        """
        masters = self._topology.masters() if key is None else [self._topology.master(key)]
        for master in masters:
            server = self._servers.get(master)
            if server is None:
                self._due.set()
                return f"{master} has not told yet what it keeps"
            if why := durability_error(server, sync, copies):
                return why
        return ""

    async def check(self, key: str) -> None:
        """Raises `StoreError` if nothing must be kept on the master of `key`, or it does not tell in `PATIENCE` s."""
        if self._topology.master(key) not in self._servers:
            self._due.set()
            await asyncio.wait([self._refreshed], timeout=PATIENCE)
        master = self._topology.master(key)
        server = self._servers.get(master)
        if server is None:
            raise StoreError(f"{master} has not told yet what it keeps")
        check(server, master)

    def wait(self, key: str, sync: bool, copies: int) -> "asyncio.Future[None] | None":
        """A future that ends when all that the master of `key` has answered so far is kept so; None: it is already.

        Others share the future: never cancel it. It ends with `StoreError` if the writes were not kept in time, or if
        that cannot be known. Raises `StoreError` if they cannot be kept so at all.
        """
        if why := self.durability_error(key, sync, copies):
            raise StoreError(why)
        master = self._topology.master(key)
        wanted = need(self._servers[master], sync, copies)
        if wanted is None:
            return None
        queue = self._queues.get((master, wanted))
        if queue is None:
            queue = self._queues[master, wanted] = _Queue(self._topology, master, wanted, self.rounds)
        return queue.join(key)

    def recheck(self, key: str) -> None:
        """The key's master refused a command: nothing counts as durable there until its rights are read again."""
        self._servers.pop(self._topology.master(key), None)
        self._due.set()

    def _refresh_soon(self, _: str) -> None:
        self._servers.clear()  # a server that takes over may keep less
        self._due.set()

    async def _keep_refreshing(self) -> None:
        while not self._closed:  # a refresh that is cancelled may end with an error of the connection instead
            with suppress(TimeoutError):
                async with asyncio.timeout(PROBE):
                    await self._due.wait()
            self._due.clear()
            generation = self._topology.generation
            try:
                servers = await read_servers(self._topology)
            except StoreError as error:
                log.debug("%s", error.detail)  # the topology says it louder
                await asyncio.sleep(PAUSE)
            else:
                if generation == self._topology.generation:  # else they may be others by now
                    self._servers = servers
                    refreshed, self._refreshed = self._refreshed, asyncio.get_running_loop().create_future()
                    refreshed.set_result(None)
                    self._tell()

    def _tell(self) -> None:
        """Log the masters that must not be used any more, or may be used again; each once."""
        told = self.unfit
        self.unfit = {master: why for master, server in self._servers.items() if (why := unfit(server))}
        for master, why in self.unfit.items():
            if why != told.get(master):
                log.error("%s cannot keep records, and takes none: %s", master, why)
        for master in told.keys() - self.unfit.keys():
            log.info("%s can keep records again", master)
        self._tell_memory()
        self._tell_promise()

    def _tell_memory(self) -> None:
        """Log the masters that have reached maxmemory, or have room again; each once."""
        full = {master for master, server in self._servers.items() if server.is_full}
        for master in full - self._full:
            log.error(
                "%s has reached its maxmemory of %d bytes, and takes no records, topics or first commits: what is "
                "there can be read; raise maxmemory, or take records away (log.retention.bytes, kafka-delete-records)",
                master,
                self._servers[master].limit,
            )
        for master in self._full - full:
            log.info("%s has memory for records again", master)
        self._full = full

    def _tell_promise(self) -> None:
        """Log a change of the lowest level: a server was configured anew, or another one took over."""
        master, server = min(self._servers.items(), key=lambda row: level(row[1], False, 1))
        reached, before = level(server, False, 1), self._level
        self._level = reached
        if reached < before:
            log.warning(
                "%s keeps less than D%d now. Without durability=fsync, %s", master, before, summarise(server, False, 1)
            )
        elif reached > before:
            log.info("%s keeps D%d now", master, reached)


class _Queue:
    """The waiters on one master for the same sync."""

    def __init__(self, topology: Topology, master: RedisAddress, wanted: Need, rounds: Spent) -> None:
        self._topology = topology
        self._rounds = rounds
        self._master = master
        self._wanted = wanted
        self._next: asyncio.Future[None] | None = None  # the round that has not begun
        self._key = ""
        self._history: ReplicationHistory | None = None  # in which the writes that wait for it were answered
        self._pipeline: Pipeline | None = None
        self._run_id = ""  # the run id of the server at the pipeline's other end
        self._working: asyncio.Task[None] | None = None

    def join(self, key: str) -> "asyncio.Future[None]":
        """The next round; `key` is one of the master's."""
        history = self._topology.replication_history(self._master)
        if self._next is None:
            self._next = asyncio.get_running_loop().create_future()
            self._key = f"{{{key}}}:@sync"
            self._history = history
        elif self._history is None or history is None or not history.continues(self._history):
            self._history = None  # some of them were answered in a history that is over
        if self._working is None or self._working.done():
            self._working = begin(self._work())
        return self._next

    async def close(self) -> None:
        """End the round under way; its waiters get `StoreError`."""
        if self._pipeline is not None:
            self._pipeline.close("the store is closed")
        if self._working is not None:
            await asyncio.wait([self._working])

    async def _work(self) -> None:
        while (future := self._next) is not None:
            self._next = None
            began = monotonic()
            # Any error goes to the waiters, also that of an answer of an unexpected form.
            (failure,) = await asyncio.gather(self._round(self._key, self._history), return_exceptions=True)
            self._rounds.count += 1
            self._rounds.seconds += monotonic() - began
            if failure is None:
                future.set_result(None)
            else:
                future.set_exception(failure)

    async def _round(self, key: str, history: ReplicationHistory | None) -> None:
        pipeline = await self._connect()
        packed = encode_commands([["PEXPIRE", key, _LIVE], self._command(), ["INFO", "replication"]])
        while True:
            renewed, counts, info = map(parse_reply, await pipeline.send(packed, 3))
            for answer in (renewed, counts, info):
                if isinstance(answer, ReplyError):
                    raise StoreError(f"{self._master}: {answer.message}")
            now = read_replication_history({"run_id": self._run_id, **read_info(info)})
            if history is None or not now.continues(history):
                raise StoreError(
                    f"{self._master} was restarted or replaced before it was known to have kept the records"
                )
            if renewed:
                break
            (made,) = map(parse_reply, await pipeline.send(encode_commands([["SET", key, "", "PX", _LIVE]])))
            if isinstance(made, ReplyError):
                raise StoreError(f"{self._master}: {made.message}")
        self._judge(*(counts if self._wanted.flushed else (1, counts)))

    def _command(self) -> list[str | int]:
        within = int(PATIENCE * 1000)
        if self._wanted.flushed:
            return ["WAITAOF", int(self._wanted.here), self._wanted.replicas, within]
        return ["WAIT", self._wanted.replicas, within]

    def _judge(self, here: int, replicas: int) -> None:
        """Raise `StoreError` for too low counts: both commands answer with them when their time is up."""
        if here < self._wanted.here:
            raise StoreError(f"{self._master} did not flush its append-only file within {PATIENCE:g} s")
        if replicas < self._wanted.replicas:
            done = "flushed" if self._wanted.flushed else "got"
            raise TooFewCopies(
                f"{count_replicas(replicas)} of {self._master} {done} the records within {PATIENCE:g} s, and "
                f"{self._wanted.replicas} must"
            )

    async def _connect(self) -> Pipeline:
        if self._pipeline is None or not self._pipeline.up:
            self._pipeline = await self._topology.connect(self._master, PATIENCE)
            self._run_id = (await identify(self._pipeline)).run_id
        return self._pipeline
