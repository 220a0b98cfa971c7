"""What /metrics serves: the format, what is counted, and what has no row of its own."""

import asyncio
import random
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batches import make_batch
from core_world import World, put, run_broker, settle
from korvet_fast.core.certificate_end import CertificateEnd
from korvet_fast.core.fair_executor import FairExecutor
from korvet_fast.core.fair_queue import FairQueue, Pace, Turns
from korvet_fast.core.groups.documents import OffsetAndMetadata, TopicPartition
from korvet_fast.core.groups.lag import find_lag
from korvet_fast.core.partition.idle import settle_idle
from korvet_fast.errors import NONE, Errors
from korvet_fast.wire.http import metrics_table as metrics
from korvet_fast.wire.http.collectors import TopicTotals, collect_topics
from korvet_fast.wire.http.exposition import Exposition
from korvet_fast.wire.http.routes import ROUTES
from korvet_fast.wire.http.session import Service, Session
from metric_rows import Key, key, read_rows

IN = "kafka_server_brokertopicmetrics_messagesin_total"


def pace() -> Pace:
    return Pace(Turns(FairQueue()))


def text_of(out: Exposition) -> str:
    return b"".join(out.finish()).decode()


async def scrape(world: World) -> dict[Key, float]:
    """What a client gets."""
    with FairExecutor(1, "test") as workers:
        session = Session(Service(world.broker, 0, ROUTES, workers, None))
        reply = await session.handle(bytearray(b"GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"))
    head, _, body = b"".join(reply).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 ")
    return read_rows(body.decode())


@given(st.lists(st.text(), unique=True, max_size=20))
def test_labels_survive_whatever_is_in_them(groups: list[str]) -> None:
    groups = ["".join(each.splitlines()) + '\n\\"' + str(number) for number, each in enumerate(groups)]
    groups = [each.encode(errors="ignore").decode() for each in groups]
    out = Exposition()
    for number, group in enumerate(groups):
        out.add(metrics.LAG, number, group, "t", "0")
    expected = {
        key("kafka_consumergroup_lag", consumergroup=group, topic="t", partition="0"): float(number)
        for number, group in enumerate(groups)
    }
    parts = text_of(out)
    assert (read_rows(parts) if parts else {}) == expected


def test_rows_of_a_metric_stay_together_whatever_the_order_they_come_in() -> None:
    places = [(metric, str(number)) for metric in (metrics.LOG_END, metrics.LOG_START) for number in range(1234)]
    random.Random(1).shuffle(places)
    out = Exposition()
    for metric, number in places:
        out.add(metric, int(number), "t", number)
    out.add_summary(metrics.REQUEST_TIME, 3, 4.5, "Produce")
    rows = read_rows(text_of(out))
    assert rows[key("kafka_log_log_logendoffset", topic="t", partition="1233")] == 1233
    assert rows[key("kafka_network_requestmetrics_totaltimems_sum", request="Produce")] == 4.5
    assert rows[key("kafka_network_requestmetrics_totaltimems_count", request="Produce")] == 3
    assert len(rows) == len(places) + 2


def test_each_metric_is_in_the_table_once() -> None:
    names = [metric.name for metric in metrics.METRICS]
    assert len(names) == len(set(names))
    declared = {value.name for value in vars(metrics).values() if isinstance(value, metrics.Metric)}
    assert set(names) == declared


def test_what_was_appended_is_counted_over_idle_time_and_deletion(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with run_broker(tmp_path) as world:
            topic = await world.broker.topics.create("t", 2, {})
            other = await world.broker.topics.create("gone", 1, {})
            batch = make_batch([b"one", b"two"])
            size = len(batch)
            await settle(put(topic.partitions[0], batch))
            await settle(put(topic.partitions[1], make_batch([b"three"])))
            await settle(put(other.partitions[0], make_batch([b"four"])))
            rows = await scrape(world)
            assert (rows[key(IN, topic="t")], rows[key(IN, topic="gone")], rows[key(IN)]) == (3, 1, 4)
            assert rows[key("kafka_server_brokertopicmetrics_bytesin_total", topic="t")] > size
            assert rows[key("kafka_log_log_logendoffset", topic="t", partition="0")] == 2
            assert rows[key("kafka_server_replicamanager_leadercount")] == 3
            assert rows[key("kafka_server_kafkaserver_brokerstate")] == 3
            assert rows[key("kafka_controller_kafkacontroller_offlinepartitionscount")] == 0
            assert rows[key("korvet_losses")] == 0

    asyncio.run(scenario())


def test_partitions_of_a_worker_that_has_ended_are_offline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a full disk it stays a member and a leader; `cluster info` says that it does not answer."""

    async def scenario() -> None:
        async with run_broker(tmp_path) as world:
            await world.broker.topics.create("t", 2, {})
            monkeypatch.setattr(world.broker.cluster, "has_ended", lambda incarnation: True)
            rows = await scrape(world)
            assert rows[key("kafka_controller_kafkacontroller_offlinepartitionscount")] == 2

    asyncio.run(scenario())


def test_counters_do_not_fall(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with run_broker(tmp_path) as world:
            topic = await world.broker.topics.create("t", 1, {})
            other = await world.broker.topics.create("gone", 1, {})
            await settle(put(topic.partitions[0], make_batch([b"one"])))
            await settle(put(other.partitions[0], make_batch([b"two"])))
            totals, most = TopicTotals(), 10

            async def count() -> dict[Key, float]:
                out = Exposition()
                await collect_topics(world.broker, totals, most, out, pace())
                return read_rows(text_of(out))

            assert (await count())[key(IN)] == 2
            for _ in range(3):
                await settle_idle([*topic.partitions, *other.partitions])
            assert (await count())[key(IN)] == 2
            await world.broker.topics.delete(other)
            rows = await count()
            assert rows[key(IN)] == 2
            assert key(IN, topic="gone") not in rows
            await world.broker.topics.create("gone", 1, {})
            rows = await count()
            assert (rows[key(IN)], rows[key(IN, topic="gone")]) == (2, 0)
            await settle(put(topic.partitions[0], make_batch([b"three"])))
            assert (await count())[key(IN)] == 3

    asyncio.run(scenario())


def test_topics_beyond_the_bound_count_in_the_totals_only(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with run_broker(tmp_path, "metrics.max.partitions=5") as world:
            for name, partitions in (("a", 3), ("b", 3), ("c", 2)):
                topic = await world.broker.topics.create(name, partitions, {})
                await settle(put(topic.partitions[0], make_batch([b"value"])))
            rows = await scrape(world)
            named = {labels for _, labels in rows if labels and labels[0][0] == "topic"}
            assert {dict(labels)["topic"] for labels in named} == {"a", "c"}  # there is no room for b
            assert rows[key(IN)] == 3
            assert rows[key("korvet_metrics_left_out")] == 1
            assert rows[key("kafka_controller_kafkacontroller_globalpartitioncount")] == 8

    asyncio.run(scenario())


def test_a_large_topic_and_a_large_group_hide_no_others(tmp_path: Path) -> None:
    """Both are first by name, and have more than a tenth of all rows: they have what is left."""

    async def scenario() -> None:
        async with run_broker(tmp_path, "metrics.max.partitions=30") as world:
            for name, partitions in (("-", 28), ("a", 2), ("b", 3)):
                await world.broker.topics.create(name, partitions, {})
                for index in range(partitions):
                    assert await commit(world, f"{name} group", name, 0, index) is NONE
            rows = await scrape(world)
            for metric, label in (("kafka_log_log_size", "topic"), ("kafka_consumergroup_lag", "consumergroup")):
                shown = {dict(labels)[label][0] for name, labels in rows if name == metric}
                assert shown == {"a", "b"}
            assert rows[key("korvet_metrics_left_out")] == 1 + 28
        async with run_broker(tmp_path, "metrics.max.partitions=33") as world:
            assert (await scrape(world))[key("korvet_metrics_left_out")] == 0

    asyncio.run(scenario())


def test_of_certificates_with_one_subject_the_first_to_end_is_told(tmp_path: Path) -> None:
    """As of an authority, while its new certificate stands beside the old one."""
    began = datetime(2026, 1, 1, tzinfo=UTC)
    rows = [("ca.pem", 'CN="us"', 20), ("ca.pem", 'CN="us"', 10), ("server.pem", 'CN="us"', 30)]
    ends = [CertificateEnd(file, name, began, began + timedelta(days), "") for file, name, days in rows]

    async def scenario() -> None:
        async with run_broker(tmp_path) as world:
            name = "korvet_certificate_not_after_timestamp_seconds"
            assert not [row for row, _ in await scrape(world) if row == name]
            world.broker.certificate_ends = lambda: ends
            told = {labels: value for (row, labels), value in (await scrape(world)).items() if row == name}
            subject = ("subject", 'CN="us"')
            assert told == {
                (("file", "ca.pem"), subject): ends[1].ends.timestamp(),
                (("file", "server.pem"), subject): ends[2].ends.timestamp(),
            }

    asyncio.run(scenario())


def test_lag_is_the_high_watermark_minus_the_committed_offset(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with run_broker(tmp_path) as world:
            broker = world.broker
            topic = await broker.topics.create("t", 1, {})
            for _ in range(5):
                await settle(put(topic.partitions[0], make_batch([b"value"]), acks=-1))
            await topic.partitions[0].high_watermark.wait()
            for group, offset in (("behind\n", 2), ("there", 5), ("above", 9)):
                error = await commit(world, group, "t", offset)
                assert error is NONE
            rows = await scrape(world)
            lags = {
                dict(labels)["consumergroup"]: value
                for (name, labels), value in rows.items()
                if name == "kafka_consumergroup_lag"
            }
            assert lags == {"behind\n": 3, "there": 0, "above": -4}
            assert rows[key("kafka_coordinator_group_groupmetadatamanager_numgroups")] == 3
            await topic.partitions[0].delete_records(4)
            assert find_lag(topic, 0, 2) == 3
            assert find_lag(topic, 1, 0) is None
            await broker.topics.delete(topic)
            await broker.topics.create("t", 1, {})
            assert await commit(world, "there", "t", 0) is NONE
            committed = {
                dict(labels)["consumergroup"]: value
                for (name, labels), value in (await scrape(world)).items()
                if name == "kafka_consumergroup_current_offset"
            }
            assert committed == {"there": 0}  # what the others committed is of the former topic

    asyncio.run(scenario())


async def commit(world: World, group: str, topic: str, offset: int, index: int = 0) -> Errors:
    """The error of a commit by somebody who is no member."""
    place = TopicPartition(topic, index)
    errors = await world.broker.groups.offsets.commit(group, "", None, -1, {place: OffsetAndMetadata(offset)})
    return errors[place]
