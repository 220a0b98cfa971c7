"""One topic: its partitions with leader, replicas and offsets, and its settings with their sources."""

from typing import Final, NamedTuple

from korvet_fast.core.acls.binding import Operation, ResourceType
from korvet_fast.core.broker import Broker
from korvet_fast.core.topics.topic import Topic
from korvet_fast.wire.http.exchange import Answer, Exchange
from korvet_fast.wire.http.page.access import sees
from korvet_fast.wire.http.page.fields import cut, find_topic
from korvet_fast.wire.http.page.render import render
from korvet_fast.wire.http.page.topics import describe_topic
from korvet_fast.wire.http.session import Session

_MOST: Final = 200  # partitions on a page


class PartitionRow(NamedTuple):
    """A partition. `leader`: -1 where there is none. Offsets and size are None where this broker does not lead."""

    number: int
    leader: int
    epoch: int
    leads: bool
    replicas: list[int]
    isr: list[int]
    start: int | None = None
    high_watermark: int | None = None
    end: int | None = None
    size: int | None = None


async def show_topic(session: Session, exchange: Exchange) -> Answer:
    """`/topic?name=NAME`. Raises `KorvetError`."""
    broker, pace = session.broker, session.pace()
    topic = find_topic(broker, exchange.query.get("name", ""))
    sheet = cut(exchange.query, len(topic.partitions), _MOST)
    summary = await describe_topic(broker, topic, session.service.rates, pace)
    rows = await pace.map(lambda index: _describe(broker, topic, index), range(sheet.start, sheet.end))
    may = sees(session, Operation.DESCRIBE_CONFIGS, ResourceType.TOPIC, topic.name)
    settings = topic.config.describe() if may else None
    return await render(
        session, "topic.html", pace, topic=topic, summary=summary, rows=rows, sheet=sheet, settings=settings
    )


def _describe(broker: Broker, topic: Topic, index: int) -> PartitionRow:
    partition = topic.partitions[index]
    leader, epoch = broker.find_leader(topic, index)
    replicas, isr = broker.find_replicas(topic, index)
    leads = partition.leadership.leads
    row = PartitionRow(index, leader, epoch, leads, list(replicas), sorted(isr))
    if not leads:
        return row
    log, mark = partition.log, partition.high_watermark
    return row._replace(start=log.start, high_watermark=mark.offset, end=log.end, size=log.size)
