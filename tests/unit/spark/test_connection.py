"""The executors' blocking connection and cluster against a scripted broker: every way in which one can disappoint."""

import asyncio
import random
import socket
import threading
import tracemalloc
from typing import Any

import pytest

from korvet_fast.client.protocol.connection import ANSWER_ROOM
from korvet_fast.client.protocol.errors import BrokerError, ClientError, ConnectionLost, Unreachable
from korvet_fast.endpoint import Address
from korvet_fast.spark.cluster import BlockingCluster, cluster
from korvet_fast.spark.connection import BlockingConnection, connect
from korvet_fast.wire.kafka.shapes.cluster import API_VERSIONS, METADATA
from korvet_fast.wire.kafka.shapes.fetch import FETCH
from scripted_broker import NODES, Script, ask, frame, introduce

LEADER_NOT_AVAILABLE = 5
UNKNOWN_TOPIC = 3


def introduced(script: Script) -> Script:
    def scripted(key: int, version: int, correlation: int) -> bytes | None:
        return (introduce if key == API_VERSIONS.key else script)(key, version, correlation)

    return scripted


def with_connection(script: Script, act: Any, patience: float = 10.0) -> Any:
    def work(endpoint: Address) -> Any:
        connection = connect(endpoint, patience)
        try:
            return act(connection)
        finally:
            connection.close()

    return ask(introduced(script), lambda endpoint: asyncio.to_thread(work, endpoint))


def with_cluster(script: Any, act: Any, patience: float = 20.0) -> Any:
    """`script(endpoint)` gives the values of each Metadata answer in turn."""

    def work(endpoint: Address) -> Any:
        answers.extend(script(endpoint))
        found = BlockingCluster([endpoint], patience)
        try:
            return act(found)
        finally:
            found.close()

    answers: list[dict[str, Any]] = []
    scripted = introduced(lambda *asked: frame(*asked, NODES | answers.pop(0)))
    return ask(scripted, lambda endpoint: asyncio.to_thread(work, endpoint))


def led(endpoint: Address, leader: int) -> dict[str, Any]:
    partition = {
        "partition_index": 0,
        "leader_id": leader,
        "replica_nodes": [],
        "isr_nodes": [],
        "offline_replicas": [],
    }
    return {
        "brokers": [{"node_id": 1, "host": endpoint.host, "port": endpoint.port}],
        "topics": [{"name": "t", "error_code": 0, "partitions": [partition]}],
    }


def unknown(code: int) -> dict[str, Any]:
    return {"topics": [{"name": "t", "error_code": code, "partitions": []}]}


def test_answers_come_in_order_and_the_rest_is_waited_for() -> None:
    def act(connection: BlockingConnection) -> list[int]:
        for _ in range(10):
            connection.send(METADATA, {"topics": []})
        assert connection.unanswered == 10
        return [connection.receive()["controller_id"] for _ in range(10)]

    def script(*asked: int) -> bytes:
        return frame(*asked, NODES | {"controller_id": asked[2]})

    assert with_connection(script, act) == list(range(1, 11))


@pytest.mark.parametrize(
    ("answer", "kind", "words"),
    [
        (lambda *asked: None, ConnectionLost, "closed the connection"),
        (lambda *asked: b"", ConnectionLost, "did not answer Metadata within 0.3 s"),
        (lambda *asked: frame(*asked, NODES)[:-1], ConnectionLost, "did not answer Metadata within 0.3 s"),
        (lambda *asked: b"\xff\xff\xff\xff", ClientError, "does not answer as a Kafka broker does.*-1 bytes"),
        (lambda *asked: b"HTTP/1.1 400 Bad", ClientError, "does not answer as a Kafka broker does"),
        (lambda *asked: frame(*asked[:2], asked[2] + 1, NODES), ClientError, "answer 2 instead of 1"),
    ],
    ids=["hangs up", "silent", "cut short", "negative length", "no Kafka", "another's answer"],
)
def test_a_failure_closes_the_connection_and_stays(answer: Script, kind: type[ClientError], words: str) -> None:
    def act(connection: BlockingConnection) -> None:
        with pytest.raises(kind, match=words) as first:
            connection.request(METADATA, {"topics": []}, 0.3 if "within" in words else None)
        assert type(first.value) is kind
        with pytest.raises(kind) as second:
            connection.send(METADATA, {})
        assert second.value is first.value

    with_connection(answer, act)


MIB = 1 << 20
ANNOUNCED = (1 << 30).to_bytes(4, "big")  # the length of an answer that is still taken


def test_finding_4_7_an_answer_that_is_only_announced_takes_no_memory() -> None:
    def act(connection: BlockingConnection) -> int:
        tracemalloc.start()
        try:
            with pytest.raises(ConnectionLost, match="did not answer Metadata"):
                connection.request(METADATA, {"topics": []}, 0.3)
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    assert with_connection(lambda *asked: ANNOUNCED, act) < 2 * MIB
    assert with_connection(lambda *asked: ANNOUNCED + bytes(5 * MIB), act) < 24 * MIB  # both sides are in this process


@pytest.mark.parametrize("asked", [0, 3 * MIB])
def test_an_answer_of_any_size_is_whole(asked: int) -> None:
    """Answers about as large as the memory reserved at first, and several times as large."""
    room = ANSWER_ROOM + asked
    sizes = [1, *(room + more for more in range(-120, 0, 30)), room, 2 * room - 90, 2 * room, 5 * room + 1]
    coming = iter(sizes)
    records = random.Random(7).randbytes(max(sizes))

    def script(key: int, version: int, correlation: int) -> bytes:
        if key == API_VERSIONS.key:
            spoken = [{"api_key": FETCH.key, "min_version": 12, "max_version": 12}]
            return frame(key, version, correlation, {"error_code": 0, "api_keys": spoken})
        row = {"partition_index": 0, "high_watermark": 1, "records": records[: next(coming)]}
        return frame(key, version, correlation, {"responses": [{"topic": "t", "partitions": [row]}]})

    def work(endpoint: Address) -> None:
        connection = connect(endpoint, 10.0)
        for size in sizes:
            answer = connection.request(FETCH, {"max_bytes": asked, "topics": []})
            assert answer["responses"][0]["partitions"][0]["records"] == records[:size]
        connection.close()

    ask(script, lambda endpoint: asyncio.to_thread(work, endpoint))


def test_the_next_address_is_asked_where_a_broker_hangs_up() -> None:
    def work(endpoint: Address) -> None:
        with socket.create_server(("127.0.0.1", 0)) as hangs_up:
            threading.Thread(target=lambda: [hangs_up.accept()[0].close() for _ in range(2)], daemon=True).start()
            found = BlockingCluster([Address(*hangs_up.getsockname()), endpoint], 5.0)
            assert [*found.partitions(None)] == ["t"]
            found.close()

    scripted = introduced(lambda *asked: frame(*asked, NODES | led(Address("127.0.0.1", 1), 1)))
    ask(scripted, lambda endpoint: asyncio.to_thread(work, endpoint))


def test_nobody_listens() -> None:
    with pytest.raises(Unreachable, match=r"cannot connect to 127.0.0.1:1: Connection refused"):
        connect(Address("127.0.0.1", 1), 1.0)
    with pytest.raises(Unreachable, match=r"cannot connect to 127.0.0.1:1"):
        BlockingCluster([Address("127.0.0.1", 1)], 0.3).partitions(None)


def test_a_leader_that_is_not_elected_yet_is_waited_for() -> None:
    def script(endpoint: Address) -> list[dict[str, Any]]:
        return [unknown(LEADER_NOT_AVAILABLE), led(endpoint, -1), led(endpoint, 1)]

    assert with_cluster(script, lambda found: [*found.by_leader([("t", 0)]).values()]) == [[("t", 0)]]


def test_a_leader_that_never_comes() -> None:
    def script(endpoint: Address) -> list[dict[str, Any]]:
        return [led(endpoint, -1)] * 1000

    with pytest.raises(BrokerError, match=r"partition 0 of topic 't'.*LEADER_NOT_AVAILABLE"):
        with_cluster(script, lambda found: found.leader("t", 0), 3.0)


def test_a_topic_or_partition_that_there_is_not() -> None:
    with pytest.raises(BrokerError, match=r"topic 't'.*UNKNOWN_TOPIC_OR_PARTITION"):
        with_cluster(lambda _: [unknown(UNKNOWN_TOPIC)], lambda found: found.partitions(["t"]))
    with pytest.raises(ClientError, match="topic 't' has no partition 4"):
        with_cluster(lambda endpoint: [led(endpoint, 1)], lambda found: found.leader("t", 4))


def test_a_topic_that_comes_to_be_is_waited_for() -> None:
    def script(endpoint: Address) -> list[dict[str, Any]]:
        return [unknown(UNKNOWN_TOPIC), unknown(LEADER_NOT_AVAILABLE), led(endpoint, 1)]

    assert with_cluster(script, lambda found: found.partitions(["t"], create=True)) == {"t": 1}


def test_internal_and_broken_topics_are_not_among_all() -> None:
    def script(endpoint: Address) -> list[dict[str, Any]]:
        values = led(endpoint, 1)
        inner = values["topics"][0] | {"name": "__inner", "is_internal": True}
        values["topics"] += [inner, {"name": "broken", "error_code": LEADER_NOT_AVAILABLE, "partitions": []}]
        return [values]

    assert with_cluster(script, lambda found: found.partitions(None)) == {"t": 1}


def test_a_process_keeps_its_cluster_for_the_next_task() -> None:
    first = cluster("127.0.0.1:1", 1.0)
    assert cluster("127.0.0.1:1", 1.0) is first
    assert cluster("127.0.0.1:2", 1.0) is not first
    with pytest.raises(ValueError, match="'nowhere' is not an address"):
        cluster("nowhere", 1.0)
