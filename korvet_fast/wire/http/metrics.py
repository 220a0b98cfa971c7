"""/metrics: what Prometheus scrapes. One scrape at a time; it gives up its turn after each millisecond of the loop."""

from http import HTTPStatus
from typing import Final

from korvet_fast.wire.http.collectors import collect_broker, collect_groups, collect_topics
from korvet_fast.wire.http.exchange import Answer, Exchange
from korvet_fast.wire.http.exposition import CONTENT_TYPE, Exposition
from korvet_fast.wire.http.metrics_table import LEFT_OUT
from korvet_fast.wire.http.session import Session

_FIXED: Final = 32 * 1024  # bytes of an answer that all brokers give
_OF_TOPIC: Final = 512
_OF_PARTITION: Final = 512
_OF_OFFSET: Final = 512  # a group's id may be long; most are not


async def scrape(session: Session, _: Exchange) -> Answer:
    """The metrics of this moment, in Prometheus's text format."""
    client, broker = session.client, session.broker
    most = broker.settings.number("metrics.max.partitions")
    async with session.service.scraping:
        size = _estimate(session, most)
        if client is not None and (granted := client.reserve(size)) is not None:
            await granted
        try:
            out, pace = Exposition(), session.pace()
            collect_broker(broker, out)
            left_out = await collect_topics(broker, session.service.totals, most, out, pace)
            left_out += await collect_groups(broker, most, out, pace)
            out.add(LEFT_OUT, left_out)
            return Answer(HTTPStatus.OK, out.finish(), CONTENT_TYPE)
        finally:
            if client is not None:
                client.release(size)


def _estimate(session: Session, most: int) -> int:
    """About how many bytes the answer will have."""
    topics = list(session.broker.topics)
    partitions = min(most, sum(len(topic.partitions) for topic in topics))
    offsets = min(most, sum(len(runtime.offsets.stored) for runtime in session.broker.groups.partitions.runtimes))
    return _FIXED + _OF_TOPIC * min(len(topics), most) + _OF_PARTITION * partitions + _OF_OFFSET * offsets
