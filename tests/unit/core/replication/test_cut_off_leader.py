"""A leader of the metadata log that is cut off reads former values: nothing is answered by them that has to be true."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from korvet_fast.core import broker as broker_module
from korvet_fast.core.acls.binding import AclBinding, AclFilter, Operation, PatternType, Permission, ResourceType
from korvet_fast.core.authentication.scram import SCRAM_SHA_256
from korvet_fast.core.authentication.users import hash_password
from korvet_fast.core.broker import Broker
from korvet_fast.core.fair_queue import BackgroundPace
from korvet_fast.core.groups.documents import OffsetAndMetadata, TopicPartition
from korvet_fast.core.replication import metadata_log
from korvet_fast.errors import StoreError
from replicated_scene import ReplicatedScene, open_brokers

T = TopicPartition("t", 0)
QUICK = ("broker.heartbeat.interval.ms=300", "broker.session.timeout.ms=4000")
READ = AclBinding(ResourceType.TOPIC, "t", PatternType.LITERAL, "User:ann", "*", Operation.READ, Permission.ALLOW)


class Trio:
    """Three brokers that know each other, with a topic `t`; broker 1 leads the metadata log."""

    def __init__(self, scene: ReplicatedScene, brokers: dict[int, Broker]) -> None:
        self.scene = scene
        self.brokers = brokers

    async def cut_off(self) -> None:
        """Nobody reaches broker 1; broker 2 leads the metadata log, and both others take broker 1 for gone."""
        await self.scene.copy_metadata()
        self.scene.isolate(1)
        while True:
            position = max((2, 3), key=lambda identity: self.scene.brokers[identity].election.position)
            try:
                await self.scene.appoint_metadata(position)
                break
            except StoreError:
                continue
        for identity in (2, 3):
            members = self.brokers[identity].cluster
            await self.scene.until(lambda members=members: [one.id for one in members.members] == [2, 3])


@asynccontextmanager
async def run_trio(place: Path, monkeypatch: pytest.MonkeyPatch, *settings: str) -> AsyncIterator[Trio]:
    scene = ReplicatedScene(place)
    async with open_brokers(scene, monkeypatch, *QUICK, *settings) as brokers:
        for broker in brokers.values():
            await scene.until(lambda broker=broker: len(broker.cluster.members) == 3)
        await brokers[1].topics.create("t", 1, {})
        yield Trio(scene, brokers)


async def test_a_coordinator_tells_no_offsets_once_another_broker_may_have_its_groups(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with run_trio(tmp_path, monkeypatch) as trio:
        first, second, third = (trio.brokers[identity].groups for identity in trio.scene.ids)
        group = next(name for name in map(str, range(200)) if first.partitions.find(name) == 1)
        await trio.scene.until(lambda: not first.partitions.error_of(group))
        assert await first.offsets.commit(group, "", None, -1, {T: OffsetAndMetadata(7)}) == {T: ""}
        await trio.cut_off()
        await trio.scene.until(lambda: not (second.partitions.error_of(group) and third.partitions.error_of(group)))
        heir = third if second.partitions.error_of(group) else second
        assert await heir.offsets.commit(group, "", None, -1, {T: OffsetAndMetadata(9)}) == {T: ""}
        assert await first.offsets.fetch(group, [T]) == ("NOT_COORDINATOR", {})


async def test_an_acl_that_is_removed_elsewhere_does_not_hold_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(broker_module, "_TAKE_OVER_INTERVAL", 0.05)
    monkeypatch.setattr(broker_module, "_ACL_PATIENCE", 0.2)
    async with run_trio(tmp_path, monkeypatch, "authorizer=acl") as trio:
        one, two = trio.brokers[1], trio.brokers[2]
        assert one.acls is not None
        assert two.acls is not None
        await one.acls.create([READ], "User:root")
        await two.acls.refresh()
        await trio.cut_off()
        assert await two.acls.delete([AclFilter()], "User:root", BackgroundPace()) == [[READ]]
        assert one.authorizer is not None
        allows = allow_reading(one)
        await trio.scene.until(lambda: not allows())
        trio.scene.cut.clear()
        await trio.scene.until(lambda: one.authorizer is not None and one.authorizer.is_ready)
        assert not allows()


async def test_a_user_who_is_removed_elsewhere_does_not_log_in_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with run_trio(tmp_path, monkeypatch) as trio:
        one, two = trio.brokers[1].users, trio.brokers[2].users
        credential = hash_password(SCRAM_SHA_256, "what ann knows")
        await one.alter("ann", {SCRAM_SHA_256: credential}, "User:root")
        assert await one.find("ann", SCRAM_SHA_256) == credential
        await trio.cut_off()
        await two.alter("ann", {SCRAM_SHA_256: None}, "User:root")
        await trio.scene.until(lambda: not trio.brokers[1].cluster.holds_lease())
        for find in (one.find("ann", SCRAM_SHA_256), one.find_any("ann"), one.list()):
            with pytest.raises(StoreError):
                await find
        trio.scene.cut.clear()
        await trio.scene.until(lambda: trio.brokers[1].cluster.holds_lease())
        assert await one.find("ann", SCRAM_SHA_256) != credential


def allow_reading(broker: Broker) -> Callable[[], bool]:
    """Whether the broker lets a client read who had an ACL."""

    def allows() -> bool:
        assert broker.authorizer is not None
        return broker.authorizer.find_permissions("User:ann", "::1").allows(Operation.READ, ResourceType.TOPIC, "t")

    return allows


async def test_nobody_is_told_that_a_broker_leads_which_leads_no_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with ReplicatedScene(tmp_path) as scene:
        log = await scene.create()
        await scene.acquire(log, 1)
        await scene.append(log, 1)
        await scene.until(lambda: not scene.replica(log, 2).is_new)
        assert await scene.brokers[1].replicas.appoint(log, 1, unclean=False) == ""
        await scene.copy_metadata()
        scene.isolate(1)
        await scene.appoint_metadata(2)
        assert await scene.appoint(log, 2) == ""
        monkeypatch.setattr(metadata_log, "_PATIENCE", 0.2)
        with pytest.raises(StoreError, match="most brokers do not answer"):
            await scene.brokers[1].replicas.appoint(log, 1, unclean=False)
