"""Brokers over files that keep each other's copies: everything one of them needs for that, put together.

`Replication` is what a broker has one of. `ReplicatedStore` (`store.py`) is the same for callers that only need a
store.
"""

import asyncio
import logging
import secrets
import shlex
from collections.abc import Callable, Sequence
from pathlib import Path

from korvet_fast.config import Settings
from korvet_fast.core.background import BackgroundTasks
from korvet_fast.core.clock import Clock
from korvet_fast.core.cluster.metadata_quorum import MetadataQuorum
from korvet_fast.core.replication.election import Election
from korvet_fast.core.replication.leading import LeaderSide
from korvet_fast.core.replication.metadata_log import MetadataLog
from korvet_fast.core.replication.peers import (
    METADATA_LOG,
    UNCLEAN,
    FetchedLog,
    KeyAnswer,
    KeyRequest,
    KeyVerb,
    NotCarriedOut,
    Peers,
)
from korvet_fast.core.replication.quorum_progress import QuorumProgress
from korvet_fast.core.replication.registry import Registry
from korvet_fast.core.replication.replica import Replica
from korvet_fast.core.replication.replica_fetcher import LONGEST_WAIT_MS, FindLogs, ReplicaFetcher
from korvet_fast.core.replication.replicas import Replicas
from korvet_fast.core.replication.static_peers import StaticPeers
from korvet_fast.errors import OutcomeUnknown, StoreError
from korvet_fast.rate_limited_log import RateLimitedLog
from korvet_fast.store.interface import CopyStore
from korvet_fast.store.types import CompareAndSet

logger = logging.getLogger(__name__)

_KEEP_UP = 0.3  # seconds between two looks at whether the metadata log has a leader
_SOON = 0.1


class Replication:
    """`open`, then use, then `close`. `brokers`: the ids of all, this one included.

    `on_change` is called when somebody else is to lead a partition; set it before `open`.
    """

    def __init__(
        self, static: StaticPeers, local: CopyStore, peers: Peers, settings: Settings, clock: Clock | None = None
    ) -> None:
        self.static = static
        self.own = own = static.own
        self.brokers = tuple(sorted(static.addresses))
        self.local = local
        self.on_change: Callable[[], None] = lambda: None
        self._peers = peers
        self._secret_file = shlex.quote(str(Path(settings.text("replication.secret.file")).absolute()))
        self._clock = clock = clock or Clock()
        self._running: list[asyncio.Task[None]] = []
        self._asking: dict[asyncio.Task[KeyAnswer], int] = {}  # what is asked of a leader of the metadata log
        self._background = BackgroundTasks(RateLimitedLog(clock.monotonic))
        self.registry = Registry(clock, self._ask)
        self.replicas = Replicas(
            own, local, self.registry, settings, clock, self._background.keep, self._change, self._find_version
        )
        self._log = MetadataLog(own, local, self.replicas.note_change, self._background.start)
        self.election = Election(own, self.brokers, self._log, local, peers, self._background.start)
        self.leading = LeaderSide(self._find_replica, clock, self.find_leader, self.replicas.change_isr)
        # A follower that waits for more keeps up: each fetch says so.
        wait_ms = min(LONGEST_WAIT_MS, settings.number("replica.lag.timeout") // 4)
        others = [broker for broker in self.brokers if broker != own]
        self._silent = silent = dict[int, str]()  # see `ReplicaFetcher`
        rate = settings.number("follower.replication.throttled.rate")
        self._fetchers = [
            ReplicaFetcher(peers, clock, self._finder(broker, in_sync=True), silent, wait_ms) for broker in others
        ]
        # Replicas that catch up take turns of their own: no in-sync replica waits behind them.
        self._fetchers += [
            ReplicaFetcher(peers, clock, self._finder(broker, in_sync=False), silent, wait_ms, rate=rate)
            for broker in others
        ]
        # One for each broker that may lead it: a former leader that hangs holds a fetch for seconds.
        self._metadata_fetchers = {
            broker: ReplicaFetcher(peers, clock, self._metadata_finder(broker), silent, wait_ms, self._learn_leader)
            for broker in others
        }

    # -- coming and going --------------------------------------------------------------------------------------------

    async def open(self) -> None:
        """Open this broker's own store, and wait for the other brokers until the metadata log has a leader.

        Raises `StoreError`.
        """
        await self.local.open()
        try:
            if await self.local.scan("topics/"):
                raise StoreError(
                    "the directory has topics of a broker without replication.peers; start this broker with another one"
                )
            await self._log.open()
            await self.election.open()
        except BaseException:
            await self.local.close()
            raise
        fetchers = (*self._metadata_fetchers.values(), *self._fetchers)
        for work in (self.replicas.run, self._keep_leader, self._peers.watch, *(fetcher.run for fetcher in fetchers)):
            self._running.append(self._background.keep(work))
        try:
            await self._await_registry()
            topics = await self.registry.scan("topics/")
            await self.replicas.note_topics(topics, await self.registry.load(UNCLEAN))
        except BaseException:
            await self.close()
            raise

    async def _await_registry(self) -> None:
        """Until the metadata log answers a save: that takes most brokers, and a load its leader alone."""
        complaint, key = "", f"started/{self.own}"
        while True:
            try:
                before = (await self._ask(KeyRequest(KeyVerb.LOAD, key))).rows.get(key)
                change = CompareAndSet(key, secrets.token_hex(8).encode(), before)
                await self._ask(KeyRequest(KeyVerb.SAVE, changes=(change,)))
            except StoreError as error:
                if error.detail != complaint:
                    complaint = error.detail
                    logger.info("waiting for the other brokers: %s%s", complaint, self._advise())
                await self._clock.sleep(_SOON)
            else:
                return

    def _advise(self) -> str:
        """What an operator may do about the leader of the metadata log; clients cannot be served before it has one."""
        leader, own = self.election.leader, self.own
        if leader == own:
            return ""
        secured = (
            " --command-config FILE (FILE has security.protocol=SSL, and ssl.truststore.location and "
            "ssl.keystore.location as the broker has them)"
            if self.static.tls
            else ""
        )
        return (
            f". If broker {leader} never comes back, have another one lead: korvet-fast partition lead @registry 0 "
            f"--broker {own} --bootstrap {self.static.addresses[own]} --secret-file {self._secret_file}{secured}"
        )

    async def close(self) -> None:
        """Stop copying, and close this broker's own store. Raises `StoreError`."""
        for task in self._running:
            task.cancel()
        for replica in self.replicas.logs.values():
            replica.stop_leading()
        self._log.stop_leading()
        self.election.close()
        await self._background.wait()
        await self._peers.close()
        await self.local.close()

    # -- the leader of the metadata log ------------------------------------------------------------------------------

    async def _keep_leader(self) -> None:
        """Take up this broker's last leadership again; where nobody answers, ask for the leader."""
        complaint = ""
        while True:
            self._give_up_former_leaders()
            try:
                if self.election.leader == self.own:
                    why = await self.election.resume_leading()
                    if why and why != complaint:
                        logger.info("the metadata log is not led yet: %s", why)
                    complaint = why
                elif not self._reaches(self.election.leader):
                    await self.election.ask_who_leads()
                for fetcher in self._metadata_fetchers.values():
                    fetcher.change()
            except StoreError as error:
                logger.error("the metadata log: %s", error.detail)
            await self._clock.sleep(_KEEP_UP)

    def _metadata_finder(self, broker: int) -> FindLogs:
        def find() -> tuple[int, Sequence[Replica]]:
            replica, leader, epoch = self._log.replica, self.election.leader, self.election.epoch
            if leader != broker or replica.progress is not None or epoch < 0:
                return broker, ()
            if (replica.state.leader, replica.state.epoch) != (leader, epoch):
                replica.state.forget_leader()
                replica.state.follow_leader(leader, epoch)
            return broker, (replica,)

        return find

    def _reaches(self, leader: int) -> bool:
        """Whether this broker copies the metadata log from that one, and was answered the last time."""
        fetcher = self._metadata_fetchers.get(leader)
        return fetcher is not None and fetcher.reached

    def _learn_leader(self, answer: FetchedLog) -> None:
        self._background.start(self.election.learn_leader(answer.leader, answer.epoch))

    async def _ask(self, request: KeyRequest) -> KeyAnswer:
        leader = self.election.leader
        if leader != self.own:
            request.check_size()  # the leader would close the connection on a request that is far too large
            return await self._ask_other(leader, request)
        return await self.serve_keys(request)

    async def _ask_other(self, leader: int, request: KeyRequest) -> KeyAnswer:
        """Wait for the answer while this one leads: it may hang. Raises `StoreError`."""
        asking = asyncio.get_running_loop().create_task(self._peers.ask_keys(leader, request))
        self._asking[asking] = leader
        try:
            await asyncio.wait([asking])
        finally:
            del self._asking[asking]
            asking.cancel()
        if asking.cancelled():
            kind = OutcomeUnknown if request.verb is KeyVerb.SAVE else NotCarriedOut
            raise kind(f"broker {leader} did not answer before another one was named")
        return asking.result()

    def _give_up_former_leaders(self) -> None:
        """What was asked of them has no answer yet: the present one is asked."""
        for asking, leader in self._asking.items():
            if leader != self.election.leader:
                asking.cancel()

    async def serve_keys(self, request: KeyRequest) -> KeyAnswer:
        """Answer for a key if this broker leads the metadata log. Raises `NotCarriedOut` and other `StoreError`s."""
        if not self._log.is_ready:
            raise NotCarriedOut(f"broker {self.own} does not lead the metadata log")
        return await self._log.serve(request)

    # -- the leaders of partitions -----------------------------------------------------------------------------------

    def _find_version(self, prefix: str) -> int:
        return self._log.find_version(prefix)

    @property
    def metadata_replica(self) -> Replica:
        """This broker's copy of the metadata log."""
        return self._log.replica

    def _find_replica(self, log: str) -> Replica | None:
        return self._log.replica if log == METADATA_LOG else self.replicas.logs.get(log)

    def _finder(self, broker: int, *, in_sync: bool) -> FindLogs:
        def find() -> tuple[int, Sequence[Replica]]:
            logs = [one for one in self.replicas.logs.values() if one.in_sync is in_sync]
            return broker, [one for one in logs if one.progress is None and one.state.leader == broker]

        return find

    def _change(self) -> None:
        for fetcher in self._fetchers:
            fetcher.change()
        self.on_change()

    def is_led(self, log: str, leader: int) -> bool:
        """Whether a partition's leader answers, as far as this broker knows: it copies what others lead all the time.

        `leader`: the broker that the metadata log names. Where this broker has no copy, it is believed.
        """
        return leader >= 0 and not (leader in self._silent and log in self.replicas.logs)

    def describe_quorum(self) -> MetadataQuorum:
        """The metadata log's leader, and voters. Only the leader knows how far all are.

        -1 where it does not answer. A leader whose disk takes nothing says so of itself, and that its end is not known.
        """
        leader, epoch = self.find_leader(METADATA_LOG)
        log, replica = self._log, self._log.replica
        if not (log.is_ready and not log.failure if leader == self.own else self._reaches(leader)):
            leader = -1
        progress, ends = replica.progress, dict.fromkeys(self.brokers, -1)
        ends[self.own] = replica.end
        if isinstance(progress, QuorumProgress):
            ends |= {voter: progress.find_end(voter) for voter in self.brokers}
        if log.failure:
            ends[self.own] = -1
        high_watermark = (progress or replica.state).high_watermark
        return MetadataQuorum(leader, epoch, high_watermark, ends)

    def find_leader(self, log: str) -> tuple[int, int]:
        """The id of a log's leader, and the epoch; -1 where that is not known."""
        if log == METADATA_LOG:
            return (self.election.leader, self.election.epoch) if self.election.is_elected else (-1, -1)
        state = self.replicas.find_state(log)
        return (state.leader, state.epoch) if state is not None else (-1, -1)
