"""A request that names much never stops another client: topics, resources, partitions, committed offsets."""

import time
from collections.abc import Callable
from typing import Any

import pytest

import batches
from broker_process import BrokerProcess
from kafka_server import (
    CREATE_TOPICS,
    DELETE_GROUPS,
    DESCRIBE_CONFIGS,
    FETCH,
    LIST_OFFSETS,
    METADATA,
    OFFSET_COMMIT,
    OFFSET_FETCH,
    PRODUCE,
    RawClient,
)
from korvet_fast.wire.kafka.errors import CODES
from second_client import BOUND, PARTITIONS, attack, forget_peak, peak_memory, set_up

INVALID = CODES["INVALID_REQUEST"]
MANY = 19_000  # partitions, as one request may name


def _new_topic(name: str) -> dict[str, Any]:
    return {"name": name, "num_partitions": PARTITIONS, "replication_factor": 1}


@pytest.mark.parametrize("names", [["t"] * 40, [f"t{number}" for number in range(40)], ["t"]])
def test_finding_2_1_topics_that_are_only_checked_stop_nobody(
    start_broker: Callable[..., BrokerProcess], names: list[str]
) -> None:
    started = start_broker()
    topics = [_new_topic(name) for name in names]
    answer, wait = attack(started, CREATE_TOPICS, 7, topics=topics, timeout_ms=1000, validate_only=True)
    expected = 0 if len(set(names)) == len(names) else INVALID
    assert [row["error_code"] for row in answer["topics"]] == [expected] * len(names)
    assert all(row["num_partitions"] == PARTITIONS for row in answer["topics"] if not expected)
    assert wait < BOUND


@pytest.mark.parametrize("times", [40, 400])
def test_finding_2_2_a_topic_named_often_is_described_once(wide: BrokerProcess, times: int) -> None:
    before = forget_peak(wide)
    answer, wait = attack(wide, METADATA, 12, topics=[{"name": "wide"}] * times)
    assert [len(row["partitions"]) for row in answer["topics"]] == [PARTITIONS]
    assert wait < BOUND
    assert peak_memory(wide) - before < 32 << 20


def test_finding_2_2_all_topics_are_described_in_slices(wide: BrokerProcess) -> None:
    answer, wait = attack(wide, METADATA, 12, topics=None)
    assert sum(len(row["partitions"]) for row in answer["topics"]) >= PARTITIONS
    assert wait < BOUND


def test_finding_2_3_a_resource_named_often_is_described_once(broker: BrokerProcess) -> None:
    before = forget_peak(broker)
    asked = [{"resource_type": 4, "resource_name": "", "configuration_keys": None}] * 5000
    answer, wait = attack(broker, DESCRIBE_CONFIGS, 4, resources=asked, include_documentation=True)
    assert len(answer["results"]) == 1
    assert len(answer["results"][0]["configs"]) > 20
    assert wait < BOUND
    assert peak_memory(broker) - before < 32 << 20


def test_finding_2_3_many_resources_are_described_in_slices(broker: BrokerProcess) -> None:
    set_up(broker.port, lambda client: client.create("described"))
    before = forget_peak(broker)
    asked = [{"resource_type": 2, "resource_name": f"missing-{number}"} for number in range(20_000)]
    asked.append({"resource_type": 2, "resource_name": "described"})
    answer, wait = attack(broker, DESCRIBE_CONFIGS, 4, resources=asked)
    assert len(answer["results"]) == 20_001
    assert wait < BOUND
    assert peak_memory(broker) - before < 64 << 20


def test_finding_2_5_a_partition_named_often_is_refused(wide: BrokerProcess) -> None:
    rows = [{"partition_index": 7, "current_leader_epoch": -1, "timestamp": 5}] * 2000
    answer, wait = attack(wide, LIST_OFFSETS, 7, topics=[{"name": "wide", "partitions": rows}])
    assert {row["error_code"] for row in answer["topics"][0]["partitions"]} == {INVALID}
    assert wait < BOUND


def _fetch(rows: list[dict[str, Any]], max_bytes: int) -> dict[str, Any]:
    defaults = {"current_leader_epoch": -1, "fetch_offset": 0}
    topics = [{"topic": "wide", "partitions": [defaults | row for row in rows]}]
    return {"max_wait_ms": 0, "min_bytes": 1, "max_bytes": max_bytes, "topics": topics}


def _fill(port: int, indexes: range, size: int) -> None:
    async def work(client: RawClient) -> None:
        batch = bytes(batches.make_batch([b"f" * size], times=[int(time.time() * 1000)]))
        for start in indexes[::100]:
            rows = [{"index": index, "records": batch} for index in range(start, start + 100)]
            topics = [{"name": "wide", "partition_data": rows}]
            answer = await client.ask(PRODUCE, 9, acks=1, timeout_ms=30_000, topic_data=topics)
            assert {row["error_code"] for row in answer["responses"][0]["partition_responses"]} == {0}

    set_up(port, work)


def test_finding_2_6_one_batch_at_most_is_more_than_was_asked_for(wide: BrokerProcess) -> None:
    _fill(wide.port, range(2000, 12_000), 8000)
    before = forget_peak(wide)
    rows = [{"partition": 2000, "partition_max_bytes": 0}] * 10_000
    answer, wait = attack(wide, FETCH, 12, **_fetch(rows, 1))
    assert {row["error_code"] for row in answer["responses"][0]["partitions"]} == {INVALID}
    assert wait < BOUND
    for limit, most in ((0, 1 << 25), (1, 1), (1 << 20, 1), (1, 1 << 25)):
        rows = [{"partition": index, "partition_max_bytes": limit} for index in range(2000, 12_000)]
        answer, wait = attack(wide, FETCH, 12, **_fetch(rows, most))
        sizes = [len(row["records"] or b"") for row in answer["responses"][0]["partitions"]]
        assert sizes[0] > 8000
        assert not any(sizes[1:])
        assert wait < BOUND
    assert peak_memory(wide) - before < 80 << 20


@pytest.mark.parametrize(
    ("key", "version", "values"),
    [
        (FETCH, 12, _fetch([{"partition": index, "partition_max_bytes": 1000} for index in range(PARTITIONS)], 1000)),
        (METADATA, 12, {"topics": [{"name": f"missing-{number}"} for number in range(PARTITIONS)]}),
    ],
)
def test_honest_requests_that_name_everything_are_answered_in_slices(
    wide: BrokerProcess, key: int, version: int, values: dict[str, Any]
) -> None:
    answer, wait = attack(wide, key, version, **values)
    rows = answer["responses"][0]["partitions"] if key == FETCH else answer["topics"]
    assert len(rows) == PARTITIONS
    assert wait < BOUND


@pytest.mark.parametrize("acks", [1, -1])
def test_a_produce_to_many_partitions_stops_nobody(wide: BrokerProcess, acks: int) -> None:
    batch = batches.make_batch([b"x"])
    rows = [{"index": index, "records": batch} for index in range(MANY)]
    topics = [{"name": "wide", "partition_data": rows}]
    answer, wait = attack(wide, PRODUCE, 9, acks=acks, timeout_ms=60_000, topic_data=topics)
    (topic,) = answer["responses"]
    assert [row["index"] for row in topic["partition_responses"]] == list(range(MANY))
    assert {row["error_code"] for row in topic["partition_responses"]} == {0}
    assert wait < BOUND


def test_a_commit_for_many_partitions_and_its_end_stop_nobody(wide: BrokerProcess) -> None:
    rows = [{"partition_index": index, "committed_offset": 5} for index in range(MANY)]
    topics = [{"name": "wide", "partitions": rows}]
    answer, wait = attack(wide, OFFSET_COMMIT, 8, group_id="many", generation_id_or_member_epoch=-1, topics=topics)
    assert {row["error_code"] for row in answer["topics"][0]["partitions"]} == {0}
    assert wait < BOUND
    answer, wait = attack(wide, DELETE_GROUPS, 2, groups_names=["many"])
    assert wait < BOUND


def test_a_committed_text_that_is_asked_for_often_stops_nobody(wide: BrokerProcess) -> None:
    rows = [{"partition_index": 0, "committed_offset": 5, "committed_metadata": "x" * 4096}]
    commit = {"group_id": "text", "generation_id_or_member_epoch": -1, "topics": [{"name": "wide", "partitions": rows}]}
    set_up(wide.port, lambda client: client.ask(OFFSET_COMMIT, 8, **commit))
    topics = [{"name": "wide", "partition_indexes": [0] * 40_000}]
    answer, wait = attack(wide, OFFSET_FETCH, 8, groups=[{"group_id": "text", "topics": topics}])
    assert len(answer["groups"][0]["topics"][0]["partitions"]) == 40_000
    assert wait < BOUND


def test_no_later_commit_of_a_connection_overtakes_a_large_one(wide: BrokerProcess) -> None:
    def commit(client: RawClient, rows: int, offset: int) -> None:
        partitions = [{"partition_index": index, "committed_offset": offset} for index in range(rows)]
        topics = [{"name": "wide", "partitions": partitions}]
        values = {"group_id": "order", "generation_id_or_member_epoch": -1, "topics": topics}
        client.send(OFFSET_COMMIT, 8, values)

    async def work(client: RawClient) -> list[int]:
        for offset, rows in enumerate((MANY, 3, 1000, 2, 100, 1)):
            commit(client, rows, offset)
        asked = [{"name": "wide", "partition_indexes": [0, 1, 2, 99, 999, MANY - 1]}]
        for _ in range(6):
            assert (await client.reply())["topics"][0]["partitions"][0]["error_code"] == 0
        (topic,) = (await client.ask(OFFSET_FETCH, 7, group_id="order", topics=asked))["topics"]
        return [row["committed_offset"] for row in topic["partitions"]]

    assert set_up(wide.port, work) == [5, 4, 4, 4, 2, 0]
