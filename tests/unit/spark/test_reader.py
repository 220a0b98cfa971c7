"""A batch read planned: from which offset to which, of which partitions, and what is wrong with it."""

import json

import pytest

from batches import NOW
from korvet_fast.client.protocol.errors import ClientError
from korvet_fast.errors import SettingError
from korvet_fast.spark.options import Use
from korvet_fast.spark.reader import BatchReader
from spark_world import World, options


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    world = World(t=3, other=1).install(monkeypatch)
    for number, count in ((0, 5), (1, 0), (2, 10)):
        if count:
            world.log("t", number).put([b"x"] * count, time=NOW + 100 * number)
    return world


def plan(**given: str) -> list[tuple[int, int, int]]:
    found = [part.value for part in BatchReader(options(Use.READ, **given)).partitions()]
    return [(part.partition, part.start, part.end) for part in found]


def test_all_there_is(world: World) -> None:
    assert plan() == [(0, 0, 5), (2, 0, 10)]
    assert plan(minPartitions="3") == [(0, 0, 5), (2, 0, 5), (2, 5, 10)]
    assert plan(maxRecordsPerPartition="4") == [(0, 0, 2), (0, 2, 5), (2, 0, 3), (2, 3, 6), (2, 6, 10)]


def test_which_partitions(world: World) -> None:
    assert plan(assign='{"t": [2, 1]}') == [(2, 0, 10)]
    assert plan(subscribePattern="t|x.*") == [(0, 0, 5), (2, 0, 10)]
    assert plan(subscribePattern="[a-s]+") == []
    with pytest.raises(ClientError, match="'assign' names partition 3 of topic 't', which has 3, from 0 on"):
        plan(assign='{"t": [3]}')
    with pytest.raises(ClientError, match="topic 'nope': There is no such topic"):
        plan(subscribe="t,nope")
    with pytest.raises(SettingError, match=r"'subscribePattern' is '\(\?=x\)', which cannot be used .*RE2"):
        plan(subscribePattern="(?=x)")


def test_offsets_are_given_for_each(world: World) -> None:
    starts = '{"t": {"0": 2, "1": -2, "2": -2}}'
    ends = '{"t": {"0": -1, "1": -1, "2": 4}}'
    assert plan(startingOffsets=starts, endingOffsets=ends) == [(0, 2, 5), (2, 0, 4)]
    with pytest.raises(SettingError, match="'startingOffsets' says nothing about partition 1 of topic 't': name every"):
        plan(startingOffsets='{"t": {"0": 2, "2": 1}}')
    with pytest.raises(SettingError, match="'endingOffsets' names partition 7 of topic 't', which is not one of those"):
        plan(endingOffsets='{"t": {"0": 2, "1": 1, "2": 1, "7": 0}}')
    with pytest.raises(
        SettingError, match="'startingOffsets' has 9 for partition 2 of topic 't', and 'endingOffsets' h"
    ):
        plan(startingOffsets='{"t": {"0": 0, "1": 0, "2": 9}}', endingOffsets=ends)


def test_times(world: World) -> None:
    late = str(NOW + 203)
    each = json.dumps({"t": {"0": NOW + 2, "1": 0, "2": NOW + 204}})
    with pytest.raises(
        SettingError, match=r"'startingTimestamp' asks for .* partition 0 of topic 't' has no record that"
    ):
        plan(startingTimestamp=late)
    assert plan(startingTimestamp=late, startingOffsetsByTimestampStrategy="latest") == [(2, 3, 10)]
    with pytest.raises(SettingError, match="partition 1 of topic 't' has no record that late"):
        plan(startingOffsetsByTimestamp=each)
    assert plan(startingOffsetsByTimestamp=each, startingOffsetsByTimestampStrategy="latest") == [(0, 2, 5), (2, 4, 10)]
    assert plan(endingTimestamp=str(NOW + 3)) == [(0, 0, 3)]
    assert plan(endingTimestamp=late) == [(0, 0, 5), (2, 0, 3)]
    assert plan(endingOffsetsByTimestamp=each) == [(0, 0, 2), (2, 0, 4)]
    # The end is before the start: nothing.
    given = {"startingTimestamp": late, "startingOffsetsByTimestampStrategy": "latest", "endingTimestamp": str(NOW + 2)}
    assert plan(**given) == []


def test_what_is_lost(world: World, caplog: pytest.LogCaptureFixture) -> None:
    world.log("t", 2).trim(4)
    assert plan() == [(0, 0, 5), (2, 4, 10)]
    early = '{"t": {"0": 0, "1": 0, "2": 1}}'
    with pytest.raises(
        ClientError, match="partition 2 of topic 't' begins at offset 4, and was to be read from 1 on: 3 o"
    ):
        plan(startingOffsets=early)
    assert plan(startingOffsets=early, failOnDataLoss="false") == [(0, 0, 5), (2, 4, 10)]
    assert "data loss: partition 2 of topic 't' begins at offset 4" in caplog.text
    beyond = '{"t": {"0": 8, "1": 0, "2": 4}}'
    with pytest.raises(ClientError, match="partition 0 of topic 't' ends at offset 5, and was to be read from 8 on"):
        plan(startingOffsets=beyond)
    assert plan(startingOffsets=beyond, failOnDataLoss="false") == [(2, 4, 10)]
    with pytest.raises(ClientError, match="partition 0 of topic 't' ends at offset 5, and was to be read from 0 to 9"):
        plan(endingOffsets='{"t": {"0": 9, "1": 0, "2": 5}}')


def test_a_log_begins_where_its_first_record_is(world: World) -> None:
    log = world.log("t", 1)
    log.put([b"x"] * 3, at=1 << 50)
    log.start = 1 << 50  # nothing was below, and it may be asked for
    assert plan(startingOffsets='{"t": {"0": 5, "1": 0, "2": 10}}') == [(1, 1 << 50, (1 << 50) + 3)]
