"""The requests that every client sends: what the broker reads of them, and what is read of its answers."""

from collections.abc import Mapping
from typing import Any

import pytest

from korvet_fast.client.protocol.errors import BrokerError
from korvet_fast.client.protocol.requests import (
    check_offset_commit,
    fetch_request,
    find_coordinator_request,
    list_offsets_request,
    offset_commit_request,
    produce_request,
    read_coordinator,
    read_fetch,
    read_offsets,
    read_produce,
)
from korvet_fast.endpoint import Address
from korvet_fast.wire.kafka.shapes.commits import OFFSET_COMMIT
from korvet_fast.wire.kafka.shapes.coordinators import FIND_COORDINATOR
from korvet_fast.wire.kafka.shapes.fetch import FETCH
from korvet_fast.wire.kafka.shapes.message import Message
from korvet_fast.wire.kafka.shapes.offsets import LIST_OFFSETS
from korvet_fast.wire.kafka.shapes.produce import PRODUCE

HEADER = {"correlation_id": 1, "client_id": "x"}


def over_the_wire(message: Message, values: Mapping[str, Any], version: int | None = None) -> dict[str, Any]:
    """The request as a broker decodes it."""
    version = message.highest if version is None else version
    header = {"api_key": message.key, "api_version": version, **HEADER}
    return message.request.decode(message.request.encode({**header, **values}, version), version, 1000)


def test_list_offsets_names_each_topic_once() -> None:
    values = list_offsets_request({("t", 0): -1, ("u", 3): 17, ("t", 2): -2}, committed=True)
    decoded = over_the_wire(LIST_OFFSETS, values)
    assert (decoded["replica_id"], decoded["isolation_level"]) == (-1, 1)
    assert [
        (topic["name"], [(row["partition_index"], row["timestamp"]) for row in topic["partitions"]])
        for topic in decoded["topics"]
    ] == [("t", [(0, -1), (2, -2)]), ("u", [(3, 17)])]


def test_the_offsets_of_an_answer() -> None:
    rows = [{"partition_index": 0, "error_code": 0, "offset": 5}, {"partition_index": 1, "error_code": 0, "offset": -1}]
    assert read_offsets({"topics": [{"name": "t", "partitions": rows}]}) == {("t", 0): 5, ("t", 1): -1}
    rows[1]["error_code"] = 6
    with pytest.raises(BrokerError, match=r"^the offsets of partition 1 of topic 't': .*NOT_LEADER_OR_FOLLOWER"):
        read_offsets({"topics": [{"name": "t", "partitions": rows}]})


def test_fetch_says_how_long_to_wait_and_how_much_to_send() -> None:
    values = fetch_request("t", {0: 7, 4: 9}, max_bytes=100, partition_max_bytes=50, max_wait=0.25, committed=True)
    decoded = over_the_wire(FETCH, values)
    names = ("replica_id", "max_wait_ms", "min_bytes", "max_bytes", "isolation_level", "session_id", "session_epoch")
    assert [decoded[name] for name in names] == [-1, 250, 1, 100, 1, 0, -1]
    (topic,) = decoded["topics"]
    rows = [(row["partition"], row["fetch_offset"], row["partition_max_bytes"]) for row in topic["partitions"]]
    assert (topic["topic"], rows) == ("t", [(0, 7, 50), (4, 9, 50)])


def test_the_rows_of_a_fetch_answer() -> None:
    rows = [{"partition_index": 0, "error_code": 0}, {"partition_index": 4, "error_code": 0}]
    answer = {"error_code": 0, "responses": [{"topic": "t", "partitions": rows}]}
    assert read_fetch("t", answer) == rows
    rows[1]["error_code"] = 1
    with pytest.raises(BrokerError, match=r"^partition 4 of topic 't': .*OFFSET_OUT_OF_RANGE"):
        read_fetch("t", answer)
    with pytest.raises(BrokerError, match=r"^topic 't': .*error 71"):
        read_fetch("t", answer | {"error_code": 71})


def test_produce_has_the_batches_of_a_topic_together() -> None:
    decoded = over_the_wire(PRODUCE, produce_request([(("t", 1), b"a"), (("u", 0), b"b"), (("t", 0), b"c")], -1, 1.5))
    assert (decoded["acks"], decoded["timeout_ms"]) == (-1, 1500)
    assert [
        (topic["name"], [(row["index"], bytes(row["records"])) for row in topic["partition_data"]])
        for topic in decoded["topic_data"]
    ] == [("t", [(1, b"a"), (0, b"c")]), ("u", [(0, b"b")])]


def test_the_rows_of_a_produce_answer() -> None:
    first, second = {"index": 0, "error_code": 0}, {"index": 2, "error_code": 6}
    answer = {"responses": [{"name": "t", "partition_responses": [first, second]}]}
    assert read_produce(answer) == {("t", 0): first, ("t", 2): second}


def test_a_commit_and_its_first_error() -> None:
    decoded = over_the_wire(OFFSET_COMMIT, offset_commit_request("g", {("t", 0): 5, ("t", 1): 6}), 8)
    (topic,) = decoded["topics"]
    rows = [(row["partition_index"], row["committed_offset"], row["committed_metadata"]) for row in topic["partitions"]]
    assert (decoded["group_id"], topic["name"], rows) == ("g", "t", [(0, 5, ""), (1, 6, "")])
    answer = {"topics": [{"name": "t", "partitions": [{"partition_index": at, "error_code": at} for at in (0, 16)]}]}
    with pytest.raises(BrokerError, match=r"^group 'g', partition 16 of topic 't': .*NOT_COORDINATOR"):
        check_offset_commit("g", answer)


@pytest.mark.parametrize("version", [0, FIND_COORDINATOR.highest])
def test_a_coordinator_is_asked_for_by_one_key_or_by_several(version: int) -> None:
    decoded = over_the_wire(FIND_COORDINATOR, find_coordinator_request("g"), version)
    assert decoded.get("key") == "g" or decoded["coordinator_keys"] == ["g"]


def test_the_coordinator_of_an_answer() -> None:
    row = {"error_code": 0, "error_message": None, "host": "h", "port": 1}
    assert read_coordinator("g", {"coordinators": [row]}) == Address("h", 1)
    assert read_coordinator("g", row | {"coordinators": []}) == Address("h", 1)
    with pytest.raises(BrokerError, match=r"the coordinator of group 'g': .*COORDINATOR_NOT_AVAILABLE"):
        read_coordinator("g", {"coordinators": [row | {"error_code": 15}]})
