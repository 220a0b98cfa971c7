"""What members, administrators and tools ask of groups. Answers are faults, by their names in `korvet_fast.errors`,
"" for none, or come with one.
"""

import asyncio
import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from korvet_fast.config import Settings
from korvet_fast.core.cluster.cluster import Cluster
from korvet_fast.core.groups.consumer.group import ConsumerGroup
from korvet_fast.core.groups.consumer.service import Consumers, read_rules
from korvet_fast.core.groups.documents import AnyGroup, Commit, Place
from korvet_fast.core.groups.group import Group, Rules
from korvet_fast.core.groups.keeper import Keeper
from korvet_fast.core.groups.keepers import Keepers
from korvet_fast.core.groups.members import Join, Joined, Sync, Synced, refuse_sync
from korvet_fast.core.host import Host
from korvet_fast.core.topics import Topics
from korvet_fast.errors import StoreError

log = logging.getLogger(__name__)


class Position(NamedTuple):
    """What a client commits for a partition. `leader_epoch` -1: it does not know. `keep_ms` -1: as long as others."""

    offset: int
    leader_epoch: int = -1
    metadata: str = ""
    keep_ms: int = -1


class Coordinator:
    """`open`, then use, then `close`."""

    def __init__(self, host: Host, settings: Settings, cluster: Cluster, topics: Topics) -> None:
        number = settings.number
        self._host = host
        self._topics = topics
        delay = number("group.initial.rebalance.delay.ms") / 1000
        self._rules = Rules(delay, number("group.max.size"), read_rules(settings))
        self.keepers = Keepers(host, cluster, self._rules)
        self.consumers = Consumers(host, settings, self.keepers, topics)
        self._shortest = number("group.min.session.timeout.ms") / 1000
        self._longest = number("group.max.session.timeout.ms") / 1000
        self._metadata = number("offset.metadata.max.bytes")
        self._retention = number("offsets.retention.minutes") * 60_000
        self._interval = number("offsets.retention.check.interval.ms") / 1000

    async def open(self) -> None:
        """Load the groups that fall to this broker. Raises `StoreError`."""
        await self.keepers.settle()
        self._host.start(self._expire_regularly())

    async def settle(self) -> None:
        """Other brokers came or went: take over groups, and give them up. Raises `StoreError`; then call it again."""
        await self.keepers.settle()

    def restore(self) -> None:
        """The server's history broke: tell the registry again, in the background, what it forgot."""
        self.keepers.restore()

    def find(self, group_id: str) -> int:
        """The id of the broker that coordinates a group; -1 if none is there."""
        return self.keepers.find(group_id)

    def close(self) -> None:
        """Whoever waits is told to look for another coordinator. What is being stored goes on."""
        self.keepers.close()

    # -- members -----------------------------------------------------------------------------------------------------

    def join(self, group_id: str, ask: Join) -> "asyncio.Future[Joined]":
        """The answer may take until all members have joined; `withdraw` if nobody waits for it any more."""
        answer: asyncio.Future[Joined] = asyncio.get_running_loop().create_future()
        fault = self._refuse(group_id)
        if not fault and not self._shortest <= ask.session <= self._longest:
            fault = "INVALID_SESSION_TIMEOUT"
        keeper = self.keepers.get(group_id)
        if not fault and keeper is None and ask.member_id:
            fault = "UNKNOWN_MEMBER_ID"
        if fault:
            answer.set_result(Joined(fault, ask.member_id))
            return answer
        keeper = keeper or self.keepers.make(group_id)
        if isinstance(keeper.group, ConsumerGroup) and keeper.group.is_empty and not ask.member_id:
            group = Group(self._rules)
            group.generation = max(keeper.group.epoch, keeper.group.revision)
            keeper.turn(group)
        if isinstance(keeper.group, ConsumerGroup):
            # Kafka lets members of both protocols into one group for a change-over without a stop; we do not.
            fault = "UNKNOWN_MEMBER_ID" if keeper.group.is_empty else "INCONSISTENT_GROUP_PROTOCOL"
            answer.set_result(Joined(fault, ask.member_id))
        else:
            keeper.group.join(ask, answer, self._host.clock.monotonic())
            keeper.settle()
        return answer

    def sync(self, group_id: str, ask: Sync) -> "asyncio.Future[Synced]":
        """The answer may take until the leader has synced; `withdraw` if nobody waits for it any more."""
        answer: asyncio.Future[Synced] = asyncio.get_running_loop().create_future()
        keeper = self.keepers.get(group_id)
        if fault := self._refuse(group_id):
            answer.set_result(refuse_sync(fault))
        elif keeper is None or isinstance(keeper.group, ConsumerGroup):
            answer.set_result(Synced("UNKNOWN_MEMBER_ID"))
        else:
            keeper.group.sync(ask, answer, self._host.clock.monotonic())
            keeper.settle()
        return answer

    def withdraw(self, group_id: str, answer: "asyncio.Future[Joined] | asyncio.Future[Synced]") -> None:
        """Give this answer at once, unless it is on its way anyhow."""
        if (keeper := self.keepers.get(group_id)) is not None:
            keeper.withdraw(answer)

    def heartbeat(self, group_id: str, member_id: str, instance_id: str | None, generation: int) -> str:
        """A member lives."""
        if fault := self._refuse(group_id):
            # While the group is loaded nobody can be told anything; members go on as they are (so does Kafka).
            return "" if fault == "COORDINATOR_LOAD_IN_PROGRESS" else fault
        keeper = self.keepers.get(group_id)
        if keeper is None or isinstance(keeper.group, ConsumerGroup):
            return "UNKNOWN_MEMBER_ID"
        return keeper.group.heartbeat(member_id, instance_id, generation, self._host.clock.monotonic())

    def leave(self, group_id: str, members: Iterable[tuple[str, str | None]]) -> tuple[str, list[str]]:
        """Members go, by member id, instance id, or both: a fault for the whole, and one for each."""
        if fault := self._refuse(group_id):
            return fault, []
        keeper = self.keepers.get(group_id)
        if keeper is None:
            return "", ["UNKNOWN_MEMBER_ID" for _ in members]
        now, group = self._host.clock.monotonic(), keeper.group
        if isinstance(group, ConsumerGroup):
            faults = [group.remove(member_id, instance_id) for member_id, instance_id in members]
        else:
            faults = [group.leave(member_id, instance_id, now) for member_id, instance_id in members]
        keeper.settle()
        return "", faults

    def _refuse(self, group_id: str) -> str:
        return self.keepers.fault_of(group_id) if group_id else "INVALID_GROUP_ID"

    # -- offsets -----------------------------------------------------------------------------------------------------

    async def commit(
        self,
        group_id: str,
        member_id: str,
        instance_id: str | None,
        generation: int,
        positions: Mapping[Place, Position],
        *,
        knows_epochs: bool = False,
    ) -> dict[Place, str]:
        """Keep positions, durable on return; a fault for each. Generation -1, no ids: of somebody who is no member.

        `generation` may be a member's epoch; `knows_epochs`: the client can tell one from the other (KIP-848).
        """
        fault = await self._see_topics(positions) or self.keepers.fault_of(group_id)
        keeper = self.keepers.get(group_id)
        if not fault and keeper is None:
            unknown = "GROUP_ID_NOT_FOUND" if knows_epochs else "ILLEGAL_GENERATION"
            fault = unknown if generation >= 0 else ""
            keeper = self.keepers.make(group_id) if not fault else None
        if not fault and keeper is not None:
            if isinstance(keeper.group, ConsumerGroup):
                fault = keeper.group.commit(member_id, generation, knows=knows_epochs)
            else:
                fault = keeper.group.commit(member_id, instance_id, generation, self._host.clock.monotonic())
        faults = {place: fault or self._check(place, position) for place, position in positions.items()}
        now = self._host.clock.wall()
        changes: dict[Place, Commit | None] = {
            place: self._date(place, position, now) for place, position in positions.items() if not faults[place]
        }
        if keeper is not None:
            if changes and (fault := await keeper.commit(changes)):
                faults |= dict.fromkeys(changes, fault)
            keeper.leave_if_vacant()
        return faults

    async def _see_topics(self, places: Iterable[Place]) -> str:
        """Other brokers may have made topics, or made them larger, that this one has not looked at yet."""
        if not all(self._exists(place) for place in places):
            try:
                await self._topics.refresh()
            except StoreError:
                return "COORDINATOR_NOT_AVAILABLE"
        return ""

    def _exists(self, place: Place) -> bool:
        topic = self._topics.get(place.topic)
        return topic is not None and 0 <= place.partition < len(topic.partitions)

    def _check(self, place: Place, position: Position) -> str:
        if not self._exists(place):
            return "UNKNOWN_TOPIC_OR_PARTITION"
        return "OFFSET_METADATA_TOO_LARGE" if len(position.metadata.encode()) > self._metadata else ""

    def _date(self, place: Place, position: Position, now: int) -> Commit:
        topic = self._topics.get(place.topic)
        assert topic is not None
        until = now + position.keep_ms if position.keep_ms >= 0 else -1
        return Commit(position.offset, position.leader_epoch, position.metadata, now, topic.id, until)

    async def fetch(
        self, group_id: str, places: Sequence[Place] | None, member_id: str | None = None, epoch: int = -1
    ) -> tuple[str, dict[Place, Commit]]:
        """The fault, and what is committed for these partitions (None: for all); to a member, if somebody says so."""
        fault = await self._see_topics(self._stored(group_id)) or self.keepers.fault_of(group_id)
        keeper = self.keepers.get(group_id)
        if not fault and keeper is not None and isinstance(keeper.group, ConsumerGroup):
            fault = keeper.group.fetch(member_id, epoch)
        if fault:
            return fault, {}
        stored = self._stored(group_id)
        wanted = stored if places is None else [place for place in places if place in stored]
        return "", {place: stored[place] for place in wanted if self._lives(place, stored[place])}

    def _stored(self, group_id: str) -> Mapping[Place, Commit]:
        keeper = self.keepers.get(group_id)
        return keeper.offsets.stored if keeper is not None else {}

    def _lives(self, place: Place, commit: Commit) -> bool:
        """Whether the topic is still the one that was committed for."""
        topic = self._topics.get(place.topic)
        return topic is not None and topic.id == commit.topic_id

    async def delete_offsets(self, group_id: str, places: Iterable[Place]) -> str:
        """Remove commits. Whether members use them is for the caller to ask."""
        fault, group = self.describe(group_id)
        keeper = self.keepers.get(group_id)
        if fault or group is None or keeper is None:
            return fault
        gone: dict[Place, Commit | None] = {place: None for place in places if place in keeper.offsets.stored}
        if gone:
            fault = await keeper.commit(gone)
            keeper.leave_if_vacant()
        return fault

    # -- groups ------------------------------------------------------------------------------------------------------

    def list(self) -> tuple[str, list[tuple[str, AnyGroup]]]:
        """The fault if some are missing, and the groups here, by name; to be looked at only."""
        fault = "COORDINATOR_LOAD_IN_PROGRESS" if self.keepers.incomplete else ""
        return fault, sorted(((keeper.id, keeper.group) for keeper in self.keepers), key=lambda row: row[0])

    def describe(self, group_id: str) -> tuple[str, AnyGroup | None]:
        """The fault, or the group, to be looked at only."""
        if fault := self._refuse(group_id):
            return fault, None
        keeper = self.keepers.get(group_id)
        if keeper is None or keeper.group.is_dead:
            return "GROUP_ID_NOT_FOUND", None
        return "", keeper.group

    async def delete(self, group_id: str) -> str:
        """Remove a group without members, and all that it has committed."""
        fault, _ = self.describe(group_id)
        keeper = self.keepers.get(group_id)
        return fault if keeper is None or fault else await keeper.erase()

    # -- time --------------------------------------------------------------------------------------------------------

    async def _expire_regularly(self) -> None:
        while await self.keepers.pause(self._interval):
            await self.expire()

    async def expire(self) -> None:
        """Remove commits that nobody came back for, and groups that have none."""
        try:
            await self._topics.refresh()  # a topic that is not known here need not be gone
        except StoreError as error:
            log.warning("no commits expire now: %s", error.detail)
            return
        for keeper in self.keepers:
            if keeper.group.is_dead or not keeper.offsets.idle:
                continue
            gone: dict[Place, Commit | None] = {
                place: None for place in keeper.offsets.stored if self._has_expired(keeper, place)
            }
            if gone:
                await keeper.commit(gone)
            if keeper.vacant and keeper.stored:
                await keeper.erase()
            keeper.leave_if_vacant()

    def _has_expired(self, keeper: Keeper, place: Place) -> bool:
        commit = keeper.offsets.stored[place]
        if not self._lives(place, commit):
            return True
        if not keeper.group.is_empty:
            return False
        now = self._host.clock.wall()
        # A group that never had members has no time at which it became empty.
        since = max(commit.ms, keeper.since) if keeper.group.protocol_type is not None else commit.ms
        return now >= commit.until if commit.until >= 0 else now - since >= self._retention
