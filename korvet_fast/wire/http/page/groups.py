"""Groups with their lag now and during the last minutes; one group with its members and its partitions."""

from collections.abc import Iterable
from itertools import compress, islice
from typing import Final, NamedTuple

from korvet_fast.core.acls.binding import Operation, ResourceType
from korvet_fast.core.broker import Broker
from korvet_fast.core.fair_queue import Pace
from korvet_fast.core.groups.classic.members import ClassicMember
from korvet_fast.core.groups.consumer.group import ConsumerGroup
from korvet_fast.core.groups.consumer.members import ConsumerMember
from korvet_fast.core.groups.documents import AnyGroup, OffsetAndMetadata, TopicPartition
from korvet_fast.core.groups.lag import find_lag, sum_lag
from korvet_fast.core.groups.runtime import GroupRuntime
from korvet_fast.core.groups.text.group import TextGroup
from korvet_fast.errors import Errors, KorvetError
from korvet_fast.wire.http.exchange import Answer, Exchange
from korvet_fast.wire.http.page.access import sees
from korvet_fast.wire.http.page.fields import cut
from korvet_fast.wire.http.page.graph import Graph, draw
from korvet_fast.wire.http.page.render import render
from korvet_fast.wire.http.page.show import show_line
from korvet_fast.wire.http.session import Session

_DESCRIBE: Final = Operation.DESCRIBE
_MOST: Final = 50  # groups on a page
_MOST_OFFSETS: Final = 200  # committed offsets on a page
_MOST_MEMBERS: Final = 200


class GroupRow(NamedTuple):
    """A group. `lag` None: not known."""

    id: str
    protocol: str
    state: str
    members: int
    lag: int | None
    graph: Graph | None


class OffsetRow(NamedTuple):
    """A committed offset. `end` and `lag` None: this broker cannot tell."""

    topic: str
    partition: int
    offset: int
    end: int | None
    lag: int | None
    committed_at: int
    metadata: str


class MemberRow(NamedTuple):
    """A member of a group."""

    id: str
    client_id: str
    host: str


async def show_groups(session: Session, exchange: Exchange) -> Answer:
    """`/groups`; the field `id` is a part of the ids that are wanted. Raises `KorvetError`."""
    broker, pace = session.broker, session.pace()
    wanted = exchange.query.get("id", "").strip()
    runtimes = list(broker.groups.partitions.runtimes)
    if not sees(session, _DESCRIBE, ResourceType.CLUSTER):
        may = await pace.map(lambda runtime: sees(session, _DESCRIBE, ResourceType.GROUP, runtime.id), runtimes)
        runtimes = list(compress(runtimes, may))
    if wanted:
        fits = await pace.map(lambda runtime: wanted in runtime.id, runtimes)
        runtimes = list(compress(runtimes, fits))
    runtimes.sort(key=lambda runtime: runtime.id)
    sheet = cut(exchange.query, len(runtimes), _MOST)
    rows = [await _describe(session, runtime, pace) for runtime in runtimes[sheet.start : sheet.end]]
    return await render(session, "groups.html", pace, rows=rows, sheet=sheet, wanted=wanted, alone=broker.cluster.alone)


async def show_group(session: Session, exchange: Exchange) -> Answer:
    """`/group?id=ID`. Raises `KorvetError`."""
    broker, pace = session.broker, session.pace()
    runtime = find_group(broker, exchange.query.get("id", ""))
    offsets = sorted(await _find_offsets(session, runtime, pace))
    sheet = cut(exchange.query, len(offsets), _MOST_OFFSETS)
    summary = await _describe(session, runtime, pace)
    rows = await pace.map(lambda one: _describe_offset(broker, *one), offsets[sheet.start : sheet.end])
    members = list_members(runtime.group)
    return await render(
        session,
        "group.html",
        pace,
        summary=summary,
        rows=rows,
        sheet=sheet,
        members=members,
        topics=sorted({partition.topic for partition, _ in offsets}),
    )


def find_group(broker: Broker, group_id: str) -> GroupRuntime:
    """A group that this broker coordinates. Raises `KorvetError`."""
    error, _ = broker.groups.groups.describe(group_id)
    runtime = broker.groups.partitions.runtimes.get(group_id)
    if error or runtime is None:
        detail = f"no group {show_line(group_id)!r} is coordinated by this broker"
        raise KorvetError(error or Errors.GROUP_ID_NOT_FOUND, detail)
    return runtime


def name_protocol(group: AnyGroup) -> str:
    """The protocol of a group's members."""
    if isinstance(group, ConsumerGroup):
        return "consumer"
    return "text" if isinstance(group, TextGroup) else "classic"


def list_members(group: AnyGroup) -> list[MemberRow]:
    """The first members of a group."""
    if isinstance(group, TextGroup):
        return [MemberRow(one.id, "", one.client_host) for one in islice(group.members.values(), _MOST_MEMBERS)]
    members: Iterable[ClassicMember | ConsumerMember] = group.members
    return [MemberRow(one.id, one.client_id, one.client_host) for one in islice(members, _MOST_MEMBERS)]


async def _find_offsets(
    session: Session, runtime: GroupRuntime, pace: Pace
) -> list[tuple[TopicPartition, OffsetAndMetadata]]:
    """The offsets that the group has committed, of the topics that the client may describe, as OffsetFetch tells."""
    offsets = list(runtime.offsets.stored.items())
    if session.find_permissions() is None:
        return offsets
    may = await pace.map(lambda one: sees(session, _DESCRIBE, ResourceType.TOPIC, one[0].topic), offsets)
    return list(compress(offsets, may))


async def _describe(session: Session, runtime: GroupRuntime, pace: Pace) -> GroupRow:
    """A group as a row. Its lag is that of all its topics, so it is for who may describe all of them."""
    broker, group = session.broker, runtime.group
    lag = graph = None
    if len(await _find_offsets(session, runtime, pace)) == len(runtime.offsets.stored):
        lag = await sum_lag(runtime, broker.topics, pace)
        graph = draw(broker.groups.lag_history.of(runtime.id))
    return GroupRow(runtime.id, name_protocol(group), group.state.value, len(group.members), lag, graph)


def _describe_offset(broker: Broker, at: TopicPartition, committed: OffsetAndMetadata) -> OffsetRow:
    topic = broker.topics.by_id(committed.topic_id)
    end = lag = None
    if topic is not None and at.partition < len(topic.partitions):
        partition = topic.partitions[at.partition]
        end = partition.high_watermark.offset if partition.leadership.leads else None
        lag = find_lag(topic, at.partition, committed.offset)
    return OffsetRow(*at, committed.offset, end, lag, committed.committed_at, committed.metadata)
