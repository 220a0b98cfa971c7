"""A stream planned: which micro-batches there are, and that a crash at any place changes nothing about them."""

import json
import random
from typing import Any

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows, ReadMinRows

from batches import NOW
from korvet_fast.client.protocol.errors import ClientError
from korvet_fast.errors import SettingError
from korvet_fast.spark import stream
from korvet_fast.spark.options import Use
from korvet_fast.spark.stream import BEGINNING, StreamReader
from spark_world import World, options

GROUP_AUTHORIZATION_FAILED = 30


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    return World(t=2).install(monkeypatch)


def open_stream(**given: str) -> StreamReader:
    return StreamReader(options(Use.STREAM, **given))


def ranges(reader: StreamReader, start: dict[str, Any], end: dict[str, Any]) -> list[tuple[int, int, int]]:
    return [(part.value.partition, part.value.start, part.value.end) for part in reader.partitions(start, end)]


def put(world: World, partition: int, count: int, topic: str = "t") -> None:
    world.log(topic, partition).put([b"x"] * count)


def test_from_the_end_and_on(world: World) -> None:
    put(world, 0, 5)
    reader = open_stream()
    first = reader.latestOffset(reader.initialOffset(), reader.getDefaultReadLimit())
    assert first == {BEGINNING: {"t": {"0": 5, "1": 0}}, "t": {"0": 5, "1": 0}}
    assert ranges(reader, {}, first) == []
    assert reader.latestOffset(first, ReadAllAvailable()) is first
    put(world, 0, 3)
    second = reader.latestOffset(first, ReadAllAvailable())
    assert second == {"t": {"0": 8, "1": 0}}
    assert ranges(reader, first, second) == [(0, 5, 8)]
    assert reader.latestOffset(second, ReadAllAvailable()) == second


@pytest.mark.parametrize("starting", ["latest", "earliest", "time"])
def test_where_a_query_begins_outlives_a_crash_before_its_first_batch_is_done(world: World, starting: str) -> None:
    given = {"startingTimestamp": str(NOW + 2)} if starting == "time" else {"startingOffsets": starting}
    put(world, 0, 5)
    put(world, 1, 4)
    reader = open_stream(**given)
    end = reader.latestOffset(reader.initialOffset(), ReadAllAvailable())
    before = ranges(reader, reader.initialOffset(), end)
    put(world, 0, 100)  # Spark has written down the end, and dies; somebody writes
    again = open_stream(**given)
    logged = json.loads(json.dumps(end))
    assert ranges(again, again.initialOffset(), logged) == before
    assert before == {"latest": [], "earliest": [(0, 0, 5), (1, 0, 4)], "time": [(0, 2, 5), (1, 2, 4)]}[starting]
    after = again.latestOffset(logged, ReadAllAvailable())
    assert ranges(again, logged, after) == [(0, 5, 105)]


def test_what_is_the_same_is_the_same_text(world: World) -> None:
    world.logs = {
        ("b", 10): world.log("b"),
        ("b", 9): world.log("b"),
        ("a", 2): world.log("a"),
        ("a", 11): world.log("a"),
    }
    reader = open_stream(assign='{"b": [10, 9], "a": [11, 2]}', startingOffsets="earliest")
    reader._begin = lambda places, first: dict.fromkeys(random.sample(places, 4), 0)  # type: ignore[method-assign]
    world.partitions = lambda topics: {"b": 11, "a": 12}  # type: ignore[method-assign]
    texts = {json.dumps(reader.latestOffset({}, ReadAllAvailable())) for _ in range(20)}
    assert len(texts) == 1
    assert texts.pop().endswith('"a": {"2": 0, "11": 0}, "b": {"9": 0, "10": 0}}')


def test_new_partitions_begin_at_their_first_record(world: World) -> None:
    put(world, 0, 5)
    reader = open_stream(subscribePattern="t.*")
    first = reader.latestOffset({}, ReadAllAvailable())
    put(world, 0, 4, "t2")
    world.log("t2").trim(2)
    second = reader.latestOffset(first, ReadAllAvailable())
    assert second == {BEGINNING: {"t2": {"0": 2}}, "t": {"0": 5, "1": 0}, "t2": {"0": 4}}
    assert ranges(reader, first, second) == [(0, 2, 4)]
    assert reader.latestOffset(second, ReadAllAvailable()) is second


def test_a_pattern_that_fits_nothing_yet_begins_at_the_first_record_of_what_comes(world: World) -> None:
    reader = open_stream(subscribePattern="later.*")
    first = reader.latestOffset({}, ReadAllAvailable())
    assert first == {BEGINNING: {}}
    put(world, 0, 4, "later")
    second = reader.latestOffset(first, ReadAllAvailable())
    assert ranges(reader, first, second) == [(0, 0, 4)]


def test_micro_batches_of_a_limited_size(world: World) -> None:
    put(world, 0, 90)
    put(world, 1, 10)
    reader = open_stream(startingOffsets="earliest", maxOffsetsPerTrigger="50")
    limit = reader.getDefaultReadLimit()
    assert limit == ReadMaxRows(50)
    start, seen = reader.initialOffset(), []
    while (end := reader.latestOffset(start, limit)) != start:
        seen.append(ranges(reader, start, end))
        start = end
    assert seen == [[(0, 0, 45), (1, 0, 5)], [(0, 45, 90), (1, 5, 10)]]
    assert reader.latestOffset({}, ReadAllAvailable())["t"] == {"0": 90, "1": 10}


def test_a_limit_counts_from_where_the_log_begins(world: World) -> None:
    reader = open_stream(startingOffsets="earliest", maxOffsetsPerTrigger="2")
    first = reader.latestOffset({}, ReadMaxRows(2))
    log = world.log()
    log.put([b"x"] * 4, at=1 << 50)  # an offset that follows the clock
    log.start = 1 << 50
    second = reader.latestOffset(first, ReadMaxRows(2))
    assert ranges(reader, first, second) == [(0, 1 << 50, (1 << 50) + 2)]


def test_a_limit_does_not_count_what_the_clock_skipped(world: World) -> None:
    log = world.log()
    for at in (1 << 50, 1 << 51, 1 << 52):
        log.put([b"x"] * 3, at=at)
    log.start = 1 << 50
    log.end = (1 << 52) + 100
    reader = open_stream(startingOffsets="earliest", maxOffsetsPerTrigger="3")
    limit, start, seen = reader.getDefaultReadLimit(), reader.initialOffset(), []
    while len(seen) < 4 and (end := reader.latestOffset(start, limit)) != start:
        seen.append(end["t"]["0"])
        start = end
    assert seen == [(1 << 50) + 3, (1 << 51) + 3, (1 << 52) + 3, (1 << 52) + 100]
    world.next.append(1)  # OFFSET_OUT_OF_RANGE: removed between two questions
    assert reader.latestOffset({}, limit)["t"]["0"] == (1 << 50) + 3


def test_small_backlogs_are_waited_for(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr(stream.time, "monotonic", lambda: now)
    put(world, 0, 1)
    reader = open_stream(startingOffsets="earliest", minOffsetsPerTrigger="10", maxTriggerDelay="30s")
    limit = reader.getDefaultReadLimit()
    assert limit == ReadMinRows(10)
    first = reader.latestOffset({}, limit)
    assert first["t"]["0"] == 1  # the first batch waits for nothing
    put(world, 0, 9)
    assert reader.latestOffset(first, limit) is first
    put(world, 0, 1)
    second = reader.latestOffset(first, limit)
    assert second["t"]["0"] == 11
    put(world, 0, 1)
    now += 29
    assert reader.latestOffset(second, limit) is second
    now += 1
    assert reader.latestOffset(second, limit)["t"]["0"] == 12
    now += 1
    put(world, 0, 1)
    reader.prepareForTriggerAvailableNow()
    assert reader.latestOffset(second, limit)["t"]["0"] == 13


def test_available_now_ends_where_it_began_to_look(world: World) -> None:
    put(world, 0, 10)
    reader = open_stream(startingOffsets="earliest", maxOffsetsPerTrigger="6", subscribePattern="t.*")
    reader.prepareForTriggerAvailableNow()
    put(world, 0, 10)
    put(world, 0, 10, "t2")
    start, limit, seen = reader.initialOffset(), reader.getDefaultReadLimit(), []
    while (end := reader.latestOffset(start, limit)) != start:
        seen += ranges(reader, start, end)
        start = end
        assert len(seen) < 5
    assert seen == [(0, 0, 6), (0, 6, 10)]
    assert reader.reportLatestOffset() == {"t": {"0": 20, "1": 0}, "t2": {"0": 10}}


def test_available_now_from_the_end(world: World) -> None:
    put(world, 0, 10)
    reader = open_stream()
    reader.prepareForTriggerAvailableNow()
    put(world, 0, 10)
    first = reader.latestOffset({}, ReadAllAvailable())
    assert ranges(reader, {}, first) == []
    assert reader.latestOffset(first, ReadAllAvailable()) is first


def test_what_was_removed(world: World, caplog: pytest.LogCaptureFixture) -> None:
    put(world, 0, 10)
    reader = open_stream(startingOffsets='{"t": {"0": 2, "1": 0}}')
    first = reader.latestOffset({}, ReadAllAvailable())
    world.log().trim(6)
    with pytest.raises(
        ClientError, match="partition 0 of topic 't' begins at offset 6, and was to be read from 2 on: 4 o"
    ):
        reader.partitions({}, first)
    tolerant = open_stream(failOnDataLoss="false")
    assert ranges(tolerant, {}, first) == [(0, 6, 10)]
    assert "4 offsets were removed" in caplog.text


def test_a_topic_made_anew(world: World, caplog: pytest.LogCaptureFixture) -> None:
    put(world, 0, 10)
    reader = open_stream(startingOffsets="earliest")
    first = reader.latestOffset({}, ReadAllAvailable())
    world.logs["t", 0] = type(world.log())()
    put(world, 0, 3)
    with pytest.raises(ClientError, match="partition 0 of topic 't' ends at offset 3, and was read up to offset 10"):
        reader.latestOffset(first, ReadAllAvailable())
    with pytest.raises(ClientError, match="partition 0 of topic 't' ends at offset 3, and was to be read from 0 to 10"):
        reader.partitions({}, first)
    tolerant = open_stream(failOnDataLoss="false")
    second = tolerant.latestOffset(first, ReadAllAvailable())
    assert second == {"t": {"0": 3, "1": 0}}
    assert ranges(tolerant, first, second) == []
    put(world, 0, 1)
    third = tolerant.latestOffset(second, ReadAllAvailable())
    assert ranges(tolerant, second, third) == [(0, 3, 4)]


def test_a_topic_that_is_deleted(world: World, caplog: pytest.LogCaptureFixture) -> None:
    put(world, 0, 10, "u")
    reader = open_stream(subscribe="t,u", startingOffsets="earliest")
    first = reader.latestOffset({}, ReadAllAvailable())
    del world.logs["u", 0]
    with pytest.raises(ClientError, match="partition 0 of topic 'u' is gone, and was read up to offset 10"):
        reader.latestOffset(first, ReadAllAvailable())
    with pytest.raises(ClientError, match="partition 0 of topic 'u' is gone, and offset 0 was to be read next"):
        reader.partitions({}, first)
    tolerant = open_stream(subscribe="t,u", failOnDataLoss="false")
    assert tolerant.latestOffset(first, ReadAllAvailable()) == {"t": {"0": 0, "1": 0}}
    with pytest.raises(ClientError, match="topic 'u': There is no such topic"):
        tolerant.latestOffset({}, ReadAllAvailable())


def test_a_broker_that_does_not_know_the_end_yet_is_asked_again(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    put(world, 0, 10)
    reader = open_stream(startingOffsets="earliest")
    first = reader.latestOffset({}, ReadAllAvailable())
    world.log().end = 7
    monkeypatch.setattr(stream.time, "sleep", lambda seconds: setattr(world.log(), "end", 12))
    assert reader.latestOffset(first, ReadAllAvailable())["t"]["0"] == 12


def test_a_group_is_told_how_far_the_query_is(world: World, caplog: pytest.LogCaptureFixture) -> None:
    put(world, 0, 10)
    reader = open_stream(startingOffsets="earliest", **{"kafka.group.id": "g"})
    first = reader.latestOffset({}, ReadAllAvailable())
    assert world.committed == {}  # planned is not done
    reader.latestOffset(first, ReadAllAvailable())
    assert world.committed == {"g": {"t": {0: 10, 1: 0}}}
    put(world, 0, 5)
    second = reader.latestOffset(first, ReadAllAvailable())
    world.commit_code = GROUP_AUTHORIZATION_FAILED
    assert reader.latestOffset(second, ReadAllAvailable()) is second
    assert "'kafka.group.id' are not up to date: group 'g', partition 0 of topic 't': " in caplog.text
    world.commit_code = 0
    reader.latestOffset(second, ReadAllAvailable())
    assert world.committed == {"g": {"t": {0: 15, 1: 0}}}


def test_an_engine_without_limits(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "LIMITS", False)
    put(world, 0, 5)
    reader = open_stream(startingOffsets="earliest")
    first = reader.latestOffset()
    assert ranges(reader, reader.initialOffset(), first) == [(0, 0, 5)]
    assert reader.latestOffset() == first
    put(world, 0, 5)
    second = reader.latestOffset()
    assert ranges(reader, first, second) == [(0, 5, 10)]
    again = open_stream(startingOffsets="earliest")  # the query is started again, and told nothing
    third = again.latestOffset()
    assert ranges(again, second, third) == []
    for name in ("maxOffsetsPerTrigger", "minOffsetsPerTrigger"):
        with pytest.raises(SettingError, match=f"option '{name}' needs PySpark 4.2 or newer"):
            open_stream(**{name: "5"})
