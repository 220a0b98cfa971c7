"""The first view: topics with their rates and sizes, a hundred at a time."""

from itertools import compress
from typing import Final, NamedTuple

from korvet_fast.core.acls.binding import Operation, ResourceType
from korvet_fast.core.broker import Broker
from korvet_fast.core.fair_queue import Pace
from korvet_fast.core.topics.topic import Topic
from korvet_fast.wire.http.exchange import Answer, Exchange
from korvet_fast.wire.http.page.access import sees
from korvet_fast.wire.http.page.fields import cut
from korvet_fast.wire.http.page.render import render
from korvet_fast.wire.http.session import Session
from korvet_fast.wire.http.topic_rates import Counts, Rates, TopicRates

_MOST: Final = 100  # topics on a page


class TopicRow(NamedTuple):
    """A topic, counted over the partitions that this broker leads. `offline`: partitions that nobody leads."""

    name: str
    layout: str
    partitions: int
    led: int
    offline: int
    records: int | None
    size: int
    rates: Rates | None


async def show_topics(session: Session, exchange: Exchange) -> Answer:
    """`/`; the field `name` is a part of the names that are wanted. Raises `KorvetError`."""
    broker, pace = session.broker, session.pace()
    wanted = exchange.query.get("name", "").strip()
    topics, partitions = list(broker.topics), broker.topics.partition_count
    if session.find_permissions() is not None:
        may = await pace.map(lambda topic: sees(session, Operation.DESCRIBE, ResourceType.TOPIC, topic.name), topics)
        topics = list(compress(topics, may))
        partitions = sum(await pace.map(lambda topic: len(topic.partitions), topics))
    many = len(topics)
    if wanted:
        fits = await pace.map(lambda topic: wanted in topic.name, topics)
        topics = list(compress(topics, fits))
    sheet = cut(exchange.query, len(topics), _MOST)
    rates = session.service.rates
    rates.forget_old(broker.clock.monotonic())
    rows = [await describe_topic(broker, topic, rates, pace) for topic in topics[sheet.start : sheet.end]]
    return await render(
        session,
        "topics.html",
        pace,
        rows=rows,
        sheet=sheet,
        wanted=wanted,
        topics=many,
        partitions=partitions,
        alone=broker.cluster.alone,
    )


async def describe_topic(broker: Broker, topic: Topic, rates: TopicRates, pace: Pace) -> TopicRow:
    """A topic as a row."""
    led = offline = records = size = 0
    counts = Counts(0, 0, 0)
    for partition in list(topic.partitions):
        if partition.leadership.leads:
            led += 1
            mark, log = partition.high_watermark, partition.log
            size += log.size
            records += mark.offset - log.start
            counts = Counts(counts[0] + mark.records, counts[1] + mark.written, counts[2] + mark.fetched)
        elif broker.find_leader(topic, partition.index)[0] < 0:
            offline += 1
        if pace.due():
            await pace.turn()
    measured = rates.measure(topic.id, counts, broker.clock.monotonic())
    entries = topic.config.log_format.entries_layout
    layout = "entries" if entries else "legacy" if topic.config.legacy else "batches"
    # In the layout `entries` offsets follow the clock, and differences of them are no numbers of records.
    counted = None if entries else records
    return TopicRow(topic.name, layout, len(topic.partitions), led, offline, counted, size, measured)
