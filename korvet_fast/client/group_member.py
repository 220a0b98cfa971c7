"""A member of a consumer group that reads one topic, by Kafka's classic protocol, which every broker knows."""

import asyncio
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Final, Self

from korvet_fast.client.cluster import Cluster
from korvet_fast.client.protocol.errors import BrokerError, ClientError, check_error_code
from korvet_fast.client.protocol.requests import check_offset_commit, offset_commit_request
from korvet_fast.errors import Errors
from korvet_fast.wire.kafka.shapes.commits import OFFSET_COMMIT
from korvet_fast.wire.kafka.shapes.groups import HEARTBEAT, JOIN_GROUP, LEAVE_GROUP, SYNC_GROUP
from korvet_fast.wire.kafka.shapes.membership import (
    ASSIGNMENT,
    CONSUMER,
    SUBSCRIPTION,
    read_assignment,
    read_subscription,
)

SESSION: Final = 45_000  # ms, as Kafka's clients
REBALANCE: Final = 60_000  # ms that the other members have to join again
PATIENCE: Final = REBALANCE / 1000 + 10  # seconds: a JoinGroup is answered when all have joined
HEARTBEAT_INTERVAL: Final = 3.0  # seconds
RETRY: Final = 0.2  # seconds until a coordinator that is moving is asked again
RANGE: Final = "range"  # the assignor
VERSION: Final = 0  # of subscriptions and assignments: what every client reads
# The group went on without this member, or waits for it: it joins again.
_LOST: Final = (
    Errors.REBALANCE_IN_PROGRESS,
    Errors.UNKNOWN_MEMBER_ID,
    Errors.ILLEGAL_GENERATION,
    Errors.MEMBER_ID_REQUIRED,
    Errors.NOT_COORDINATOR,
    Errors.COORDINATOR_NOT_AVAILABLE,
    Errors.COORDINATOR_LOAD_IN_PROGRESS,
)


class GroupMember:
    """`async with GroupMember(...) as member:` `join`, read, `commit`; again when `lost`. Leaves at the end.

    All methods raise `ClientError`.
    """

    def __init__(self, cluster: Cluster, group: str, topic: str) -> None:
        self.lost = asyncio.Event()  # the assignment holds no more: commit, and join again
        self._cluster = cluster
        self._group = group
        self._topic = topic
        self._id = ""
        self._generation = -1
        self._heartbeats: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._stop_heartbeats()
        if self._id and not isinstance(error, ClientError):
            await self._leave()

    async def join(self) -> list[int]:
        """Join the group, and return the partitions that this member is to read until `lost`."""
        self._stop_heartbeats()
        while True:
            try:
                partitions = await self._try_to_join()
            except BrokerError as error:
                if error.error not in _LOST:
                    raise
                if error.error is Errors.UNKNOWN_MEMBER_ID:
                    self._id = ""
                await asyncio.sleep(0 if error.error is Errors.MEMBER_ID_REQUIRED else RETRY)
            else:
                self.lost.clear()
                self._heartbeats = asyncio.create_task(self._send_heartbeats())
                return partitions

    async def commit(self, offsets: Mapping[int, int]) -> None:
        """Commit the next offsets by partition. Where the group went on meanwhile, `lost` is set instead."""
        if not offsets:
            return
        named = {(self._topic, partition): offset for partition, offset in offsets.items()}
        request = offset_commit_request(self._group, named)
        request |= {"generation_id_or_member_epoch": self._generation, "member_id": self._id}
        coordinator = await self._cluster.coordinator(self._group)
        try:
            check_offset_commit(self._group, await coordinator.request(OFFSET_COMMIT, request))
        except BrokerError as error:
            if error.error not in _LOST:
                raise
            self.lost.set()

    async def _try_to_join(self) -> list[int]:
        coordinator = await self._cluster.coordinator(self._group)
        request = {
            "group_id": self._group,
            "session_timeout_ms": SESSION,
            "rebalance_timeout_ms": REBALANCE,
            "member_id": self._id,
            "protocol_type": CONSUMER,
            "protocols": [{"name": RANGE, "metadata": SUBSCRIPTION.encode({"topics": [self._topic]}, VERSION)}],
        }
        joined = await coordinator.request(JOIN_GROUP, request)
        self._id = joined["member_id"] or self._id
        check_error_code(f"group {self._group!r}", joined["error_code"])
        self._generation = joined["generation_id"]
        members = joined["members"] if joined["leader"] == self._id and not joined["skip_assignment"] else []
        assignments = await self._assign({row["member_id"]: row["metadata"] for row in members})
        request = {
            "group_id": self._group,
            "generation_id": self._generation,
            "member_id": self._id,
            "protocol_type": CONSUMER,
            "protocol_name": joined["protocol_name"],
            "assignments": [{"member_id": name, "assignment": each} for name, each in assignments.items()],
        }
        synced = await coordinator.request(SYNC_GROUP, request)
        check_error_code(f"group {self._group!r}", synced["error_code"])
        found = read_assignment(synced["assignment"])
        if found is None:
            raise ClientError(f"group {self._group!r}: the assignment of its leader cannot be read")
        return [partition for topic, partition in found if topic == self._topic]

    async def _assign(self, members: Mapping[str, bytes]) -> dict[str, bytes]:
        """As the leader: what each member is to read, by the range assignor. `members`: with their subscriptions."""
        topics = {name: read_subscription(metadata) or set() for name, metadata in members.items()}
        found: dict[str, dict[str, list[int]]] = {name: {} for name in members}
        for topic in sorted(set().union(*topics.values())):
            readers = sorted(name for name in members if topic in topics[name])
            try:
                partitions = await self._cluster.partitions(topic)
            except BrokerError:
                continue  # a topic that is not there yet
            for name, share in zip(readers, share_range(partitions, len(readers)), strict=True):
                found[name][topic] = share
        rows = {name: [{"topic": topic, "partitions": each} for topic, each in found[name].items()] for name in found}
        return {name: ASSIGNMENT.encode({"assigned_partitions": each}, VERSION) for name, each in rows.items()}

    async def _send_heartbeats(self) -> None:
        request = {"group_id": self._group, "generation_id": self._generation, "member_id": self._id}
        while True:
            await asyncio.sleep(HEARTBEAT_INTERVAL)
            try:
                coordinator = await self._cluster.coordinator(self._group)
                answer: dict[str, Any] = await coordinator.request(HEARTBEAT, request)
                check_error_code(f"group {self._group!r}", answer["error_code"])
            except ClientError:
                self.lost.set()  # the next JoinGroup tells whether the reason lasts
                return

    async def _leave(self) -> None:
        request = {"group_id": self._group, "member_id": self._id, "members": [{"member_id": self._id}]}
        coordinator = await self._cluster.coordinator(self._group)
        await coordinator.request(LEAVE_GROUP, request)

    def _stop_heartbeats(self) -> None:
        if self._heartbeats is not None:
            self._heartbeats.cancel()
            self._heartbeats = None


def share_range(partitions: Sequence[int], readers: int) -> list[list[int]]:
    """A range of the partitions for each reader; the first ones get one more."""
    share, over = divmod(len(partitions), readers)
    ends = [share * (turn + 1) + min(turn + 1, over) for turn in range(readers)]
    return [list(partitions[begin:end]) for begin, end in zip([0, *ends], ends, strict=False)]
