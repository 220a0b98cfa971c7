"""This broker's copies of partitions, as the metadata log wants them: made, led, followed, removed.

Every broker sees the same changes in the same order. A change of the leader or of the in-sync replicas is a
compare-and-set, so of two brokers with different changes one succeeds.
"""

import asyncio
import logging
from collections.abc import Callable, Collection, Coroutine, Mapping, Sequence
from functools import partial
from typing import Any

from korvet_fast.config import Settings
from korvet_fast.core.clock import Clock
from korvet_fast.core.fair_queue import BackgroundPace
from korvet_fast.core.partition.leader_epochs import explain_last_epoch
from korvet_fast.core.replication.leader_progress import LagLimits, LeaderProgress
from korvet_fast.core.replication.partition_state import PREFIX, PartitionState, find_present, unpack_state
from korvet_fast.core.replication.peers import METADATA_LOG, UNCLEAN, read_unclean
from korvet_fast.core.replication.registry import Registry
from korvet_fast.core.replication.replica import PREFIX as COPIES
from korvet_fast.core.replication.replica import Replica, remove_copy
from korvet_fast.core.topic_config import TopicConfig
from korvet_fast.core.topics.topic import Document
from korvet_fast.errors import StoreError
from korvet_fast.store.interface import CopyStore
from korvet_fast.store.types import CannotLead, NotLeader

logger = logging.getLogger(__name__)

RACK_AWARE = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
_TOPICS = "topics/"
_AGAIN = 0.2  # seconds after a failure
_SOON = 0.02  # seconds between two looks at a copy that was just made, or is about to have a change
_PATIENCE = 2.0  # seconds until this broker's copy of the metadata log has a change of topics


class Replicas:
    """`logs`: this broker's copies, by the log's name. `on_change` is called when somebody else is to lead a partition.

    `note_change` gets the value of each key in the metadata log; `run` makes and removes copies after it.
    """

    def __init__(
        self,
        own: int,
        store: CopyStore,
        registry: Registry,
        settings: Settings,
        clock: Clock,
        keep: Callable[[Callable[[], Coroutine[Any, Any, None]]], object],
        on_change: Callable[[], None],
        find_version: Callable[[str], int],
    ) -> None:
        """`find_version`: of keys in this broker's copy of the metadata log, as `Registry.version` has it of all."""
        self.logs: dict[str, Replica] = {}
        self._own = own
        self._store = store
        self._registry = registry
        self._settings = settings
        self._clock = clock
        self._keep = keep
        self._on_change = on_change
        self._find_version = find_version
        self._limits = LagLimits(settings.number("replica.max.lag"), settings.number("replica.lag.timeout") / 1000)
        # Consumers at followers wait for it.
        self._tells_watermark = settings.text("replica.selector.class") == RACK_AWARE
        self._topics: dict[str, Document] = {}
        self._configs: dict[str, tuple[Document, TopicConfig]] = {}  # by topic: what it was made from, and itself
        self._states: dict[str, PartitionState] = {}  # in the metadata log, by log
        self._taken: dict[
            str, int
        ] = {}  # by log that this broker leads: the last version of its state that was applied
        self._uncopied: dict[str, None] = {}  # topics whose copies are to be made or removed
        self._leftovers: dict[str, None] = {}  # logs here that no topic has
        self._unclean = -1  # the epoch of the metadata log's last unclean election
        self._vanished: set[str] = set()  # ids of topics that are gone, of whose deletion there is no record
        self._wake = asyncio.Event()

    # -- changes of the metadata log ----------------------------------------------------------------------------------

    def note_change(self, key: str, value: bytes | None) -> None:
        """The metadata log has this value under a key from now on."""
        if key.startswith(_TOPICS):
            topic = key.removeprefix(_TOPICS)
            document, known = Document.unpack(value) if value is not None else None, self._topics.get(topic)
            if known is not None and (document is None or document.id != known.id):
                self._vanished.add(known.id.hex())  # a record of its deletion would have come before
            if document is None or document.deleting:
                self._topics.pop(topic, None)
                self._configs.pop(topic, None)
            else:
                self._topics[topic] = document
            self._uncopied[topic] = None
            self._wake.set()
        elif key.startswith(PREFIX):
            log = key.removeprefix(PREFIX)
            if value is None:
                self._states.pop(log, None)
            else:
                self._states[log] = unpack_state(log, value)
            self._follow_state(log)
            self._on_change()
        elif key == UNCLEAN and value is not None:
            self._unclean = max(self._unclean, read_unclean(value, self._unclean))

    def find_replicas(self, log: str) -> Sequence[int]:
        """The brokers that have copies, the first choice of a leader first; none where there is no such partition."""
        topic, _, index = log.rpartition(":")
        document = self._topics.get(topic)
        return document.replicas[int(index)] if document is not None and 0 <= int(index) < document.partitions else ()

    def find_state(self, log: str) -> PartitionState | None:
        """The leader and the in-sync replicas of a partition; None if there is no such partition."""
        replicas = self.find_replicas(log)
        if not replicas:
            return None
        topic = self._topics[log.rpartition(":")[0]]
        return find_present(self._states.get(log), topic.id.hex(), replicas)

    def find_leader(self, log: str) -> int:
        """The id of the broker that is to lead a partition; -1 while this broker has no copy, or does not know."""
        state = self.find_state(log)
        if state is None or (state.leader == self._own and log not in self.logs):
            return -1
        return state.leader

    def leads(self, log: str) -> bool:
        """Whether this broker's copy takes appends as the leader's: not before `acquire`, nor after another's turn."""
        replica = self.logs.get(log)
        return replica is not None and replica.progress is not None

    def is_led_by(self, log: str, broker: int) -> bool:
        """Whether a broker is to lead a partition, and is not known to lack what it has to have for that."""
        state = self.find_state(log)
        if state is None or self.find_leader(log) != broker:
            return False
        return broker != self._own or not self._lacks_copy(log, state)

    def _lacks_copy(self, log: str, state: PartitionState) -> bool:
        """Whether this broker never had what others may have of a partition, and nobody said that it may be lost."""
        replica = self.logs.get(log)
        return (replica is None or replica.is_new) and state.epoch >= 0 and not state.recovering

    def _follow_state(self, log: str) -> None:
        """Make the copy lead or follow, by the state."""
        replica, state = self.logs.get(log), self.find_state(log)
        if replica is None or state is None or state.topic != replica.topic:
            return
        progress = replica.progress
        replica.in_sync = self._own in state.isr
        if state.leader == self._own:
            if isinstance(progress, LeaderProgress) and progress.epoch == state.epoch:
                progress.configure(self._configure(log).copies)
                self._take_isr(replica, progress, state)
            elif progress is not None and progress.epoch < state.epoch:
                replica.stop_leading()
            return
        replica.stop_leading()
        if state.epoch > replica.state.epoch:
            replica.state.forget_leader()
        if state.epoch >= 0:
            replica.state.follow_leader(state.leader, state.epoch)

    def _take_isr(self, replica: Replica, progress: LeaderProgress, state: PartitionState) -> None:
        """The metadata log has these in sync. A version counts once, as it is told in two ways."""
        if state.version > self._taken[replica.name]:
            self._taken[replica.name] = state.version
            progress.take_isr(state.isr)
        replica.advance()

    def find_in_sync(self, log: str) -> Collection[int]:
        """The in-sync replicas of a partition that this broker leads which keep up now; none of another one.

        The metadata log may have others: it cannot be told while nobody leads it.
        """
        replica = self.logs.get(log)
        progress = replica.progress if replica is not None else None
        return progress.find_in_sync(self._clock.monotonic()) if isinstance(progress, LeaderProgress) else ()

    def _configure(self, log: str) -> TopicConfig:
        """The settings of a partition's topic."""
        topic = log.rpartition(":")[0]
        document = self._topics[topic]
        known = self._configs.get(topic)
        if known is None or known[0] is not document:
            known = self._configs[topic] = document, TopicConfig(self._settings, document.configs, document.fixed)
        return known[1]

    # -- copies ------------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Make the copies that are to be there, remove those that are not, and see who keeps up; until cancelled."""
        while True:
            for topic in list(self._uncopied):
                self._uncopied.pop(topic)
                try:
                    await self._copy_topic(topic)
                except StoreError as error:
                    logger.error("topic %s cannot be copied yet: %s", topic, error.detail)
                    self._uncopied[topic] = None
                except Exception:
                    logger.exception("topic %s cannot be copied", topic)  # the others can
            await self._remove_leftovers()
            pace = BackgroundPace()
            for replica in list(self.logs.values()):
                self.change_isr(replica)
                if pace.due():
                    await pace.turn()
            try:
                async with asyncio.timeout(max(_AGAIN, min(1.0, self._limits.seconds / 4))):
                    await self._wake.wait()
            except TimeoutError:
                continue
            self._wake.clear()

    async def _copy_topic(self, topic: str) -> None:
        document = self._topics.get(topic)
        wanted = document.id.hex() if document is not None else ""
        for replica in [one for name, one in self.logs.items() if name.rpartition(":")[0] == topic]:
            if replica.topic != wanted:
                del self.logs[replica.name]
                self._taken.pop(replica.name, None)
                self._leftovers[replica.name] = None  # until it is gone: dropping it may fail
                await replica.drop(keep=replica.topic in self._vanished and replica.unclean != self._unclean)
                self._leftovers.pop(replica.name, None)
        pace = BackgroundPace()
        for index, brokers in enumerate(document.replicas[: document.partitions] if document is not None else ()):
            log = f"{topic}:{index}"
            if pace.due():
                await pace.turn()
            if self._own in brokers and log not in self.logs:
                replica = Replica(log, wanted, self._store)
                replica.tells_watermark, replica.unclean = self._tells_watermark, self._unclean
                await replica.open()
                self.logs[log] = replica
            if self._topics.get(topic) is not document:
                return  # it was changed or deleted meanwhile, and its turn comes again
            if log in self.logs:
                self.logs[log].segment_limits = self._configure(log).segment_limits
                self._follow_state(log)
        self._on_change()

    async def note_topics(self, topics: Mapping[str, bytes], unclean: bytes | None) -> None:
        """Remove the copies of topics that were deleted while this broker was away. Raises `StoreError`.

        `topics`: the keys and documents of all, as the leader of the metadata log has them. Of a topic whose document
        cannot be read, all copies stay. `unclean`: its value of `UNCLEAN`, loaded after them; topics that are gone
        since a copy was made may be lost, not deleted.
        """
        if unclean is not None:
            self.note_change(UNCLEAN, unclean)
        here = {key.removeprefix(COPIES) for key in await self._store.scan(COPIES)} - {METADATA_LOG}
        wanted = set()
        for key, packed in topics.items():
            topic = key.removeprefix(_TOPICS)
            try:
                document = Document.unpack(packed)
            except StoreError:  # told when the topics are opened
                wanted |= {log for log in here if log.rpartition(":")[0] == topic}
                continue
            brokers = enumerate(document.replicas[: document.partitions])
            wanted |= {f"{topic}:{index}" for index, copies in brokers if self._own in copies}
        self._leftovers = dict.fromkeys(here - wanted)
        self._wake.set()

    async def _remove_leftovers(self) -> None:
        for log in list(self._leftovers):
            try:
                is_back = self._own in self.find_replicas(log) or log in self.logs
                if not is_back and await remove_copy(self._store, log, self._unclean):
                    logger.info("%s is removed: its topic was deleted while this broker was away", log)
            except StoreError as error:
                logger.error("%s cannot be removed yet: %s", log, error.detail)
                return
            self._leftovers.pop(log)

    async def measure(self, log: str) -> tuple[int, int] | None:
        """The bytes of this broker's copy, and its lag (`Replica.lag`); None without one. Raises `StoreError`."""
        replica = self.logs.get(log)
        return ((await self._store.bounds(log)).size, replica.lag) if replica is not None else None

    # -- leading -----------------------------------------------------------------------------------------------------

    async def acquire(self, log: str, epoch: int) -> Replica:
        """Lead a partition, under `epoch` or a later one. Raises `NotLeader`, `CannotLead` and other `StoreError`s."""
        replica = self.logs.get(log)
        if replica is None:
            raise NotLeader(f"{log} has no copy here yet")
        while True:
            document = await self._load(log)
            state = self._read(log, document)
            if state.topic != replica.topic:
                raise NotLeader(f"{log} of the topic that was deleted is still here, and the new one has no copy yet")
            if state.leader != self._own or self._own not in state.isr:
                raise NotLeader(f"{log} is to be led by broker {state.leader}")
            if self._lacks_copy(log, state):
                another = state.name_another(log, self._own)
                raise CannotLead(f"{log}: this broker has copied nothing yet, or its copy is gone; {another}")
            taken = state._replace(version=state.version + 1, epoch=max(state.epoch + 1, epoch), recovering=False)
            if why := explain_last_epoch(taken.epoch):
                raise StoreError(f"{log}: {why}")
            packed = taken.pack()
            if await self._registry.save(PREFIX + log, packed, document):
                break
        if not self.find_replicas(log):
            raise NotLeader(f"{log} was deleted")
        now, minimum = self._clock.monotonic(), self._configure(log).copies
        self._taken[log] = taken.version
        await replica.begin_leading(
            taken.epoch,
            lambda end, safe: LeaderProgress(
                self._own, taken.epoch, self.find_replicas(log), taken.isr, end, safe, minimum, self._limits, now
            ),
        )
        present = self.find_state(log)
        if present is not None and present.version > taken.version and present.leader != self._own:
            self._follow_state(log)
            self._on_change()
            raise NotLeader(f"{log} is to be led by broker {present.leader}")
        return replica

    async def is_leader(self, log: str) -> bool:
        """Whether the metadata log says at this moment that this broker leads a partition. Raises `StoreError`."""
        replica = self.logs.get(log)
        progress = replica.progress if replica is not None else None
        if replica is None or progress is None:
            return False
        document = await self._registry.load(PREFIX + log)
        state = self._read(log, document)
        if (state.topic, state.leader, state.epoch) != (replica.topic, self._own, progress.epoch):
            return False
        # A former leader of the metadata log that is cut off answers a load out of date, but carries out no save.
        return await self._registry.save(PREFIX + log, document, document) and replica.progress is progress

    async def _load(self, log: str) -> bytes | None:
        """A partition's document. If there is none, or one of another topic, this broker knows the present topic.

        Without that it would write the state of a deleted topic over that of the new one. Raises `NotLeader` if it
        does not get to know that, and other `StoreError`s.
        """
        document = await self._registry.load(PREFIX + log)
        topic = self._topics.get(log.rpartition(":")[0])
        if document is not None and topic is not None and unpack_state(log, document).topic == topic.id.hex():
            return document
        version, until = await self._registry.version(_TOPICS), self._clock.monotonic() + _PATIENCE
        while self._find_version(_TOPICS) < version:
            if self._clock.monotonic() > until:
                raise NotLeader(f"{log}: this broker has not copied the last changes of topics yet")
            await self._clock.sleep(_SOON)
        return document

    def _read(self, log: str, document: bytes | None) -> PartitionState:
        """Raises `NotLeader` if the partition is gone."""
        replicas = self.find_replicas(log)
        if not replicas:
            raise NotLeader(f"{log} was deleted")
        state = unpack_state(log, document) if document is not None else None
        return find_present(state, self._topics[log.rpartition(":")[0]].id.hex(), replicas)

    def change_isr(self, replica: Replica) -> None:
        """Write the in-sync replicas to the metadata log, if they have changed."""
        progress = replica.progress
        if isinstance(progress, LeaderProgress) and (isr := progress.propose(self._clock.monotonic())) is not None:
            progress.begin_change(isr)
            self._keep(partial(self._change_isr, replica, progress, isr))

    async def _change_isr(self, replica: Replica, progress: LeaderProgress, isr: frozenset[int]) -> None:
        """Until the metadata log has answered, both the former and the new members are waited for.

        After an answer that was lost the change is asked for once more. It stays pending until then, whatever the
        metadata log tells meanwhile: else another change could begin, and be made undone by this one.
        """
        key = PREFIX + replica.name
        while replica.progress is progress:
            try:
                document = await self._registry.load(key)
                state = self._read(replica.name, document)
                if replica.progress is not progress:
                    return  # this broker leads under a later epoch meanwhile, or no more
                if (state.leader, state.epoch) != (self._own, progress.epoch):
                    replica.stop_leading()
                    return
                changed = state._replace(version=state.version + 1, isr=tuple(sorted(isr)))
                if await self._registry.save(key, changed.pack(), document):
                    if replica.progress is progress:
                        # First the set in force: without it the watermark would wait for the former members alone.
                        self._take_isr(replica, progress, changed)
                        progress.end_change(progress.isr)
                        replica.advance()
                    logger.info("%s: in sync are the brokers %s", replica.name, ", ".join(map(str, sorted(isr))))
                    return
            except StoreError as error:
                logger.debug("%s: the in-sync replicas cannot be changed yet: %s", replica.name, error.detail)
                await self._clock.sleep(_AGAIN)

    async def appoint(self, log: str, broker: int, *, unclean: bool, until: float = 0.0) -> str:
        """Have this broker lead a partition from now on; returns why not, or "". Raises `StoreError`.

        `unclean`: also if it is not in sync; records that it does not have are lost. `until`: when, in monotonic
        seconds, this broker no longer waits for the first fetch of a copy that it has just made.
        """
        while True:
            document = await self._load(log)
            state, replicas = self._read(log, document), self.find_replicas(log)
            if broker not in replicas:
                return f"broker {broker} has no copy of {log}; it is kept by {', '.join(map(str, replicas))}"
            if broker not in state.isr and not unclean:
                present = ", ".join(map(str, state.isr))
                return f"broker {broker} is not in sync, and would lose records; in sync: {present}"
            is_whole = broker != self._own or not self._lacks_copy(log, state) or await self._await_copy(log, until)
            if broker == state.leader and is_whole:
                if await self._registry.save(PREFIX + log, document, document):  # the load may be out of date
                    return ""
                continue
            if not is_whole and not unclean:
                another = state.name_another(log, self._own)
                return f"broker {broker} has copied nothing of {log} yet, or its copy is gone; {another}"
            loses = not is_whole or broker not in state.isr
            isr = (broker,) if loses else state.isr
            changed = state._replace(version=state.version + 1, leader=broker, isr=isr, recovering=loses)
            if await self._registry.save(PREFIX + log, changed.pack(), document):
                return ""

    async def _await_copy(self, log: str, until: float) -> bool:
        """Whether this broker has what it may lead."""
        while (replica := self.logs.get(log)) is None or replica.is_new:
            if self._clock.monotonic() > until:
                return False
            await self._clock.sleep(_SOON)
        return True
