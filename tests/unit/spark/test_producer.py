"""The sink's producer against brokers that fail in every way: each record stored once and in order, or an error."""

import socketserver
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from batches import make_batch, read_values
from kafka_messages import CATALOG
from korvet_fast.client.protocol.errors import BrokerError, ClientError
from korvet_fast.core.partition.producer_state import ProducerState
from korvet_fast.endpoint import Address
from korvet_fast.errors import KorvetError
from korvet_fast.spark import cluster, producer
from korvet_fast.spark.cluster import BlockingCluster
from korvet_fast.spark.connection import BlockingConnection
from korvet_fast.spark.producer import Delivery, Producer
from korvet_fast.wire.kafka.errors import CODES
from korvet_reference.batch import validate_batches

PARTITIONS = 3
PRODUCE, METADATA, API_VERSIONS, INIT_PRODUCER_ID = 0, 3, 18, 22
SPOKEN = [{"api_key": key, "min_version": low, "max_version": high} for key, low, high in [
    (PRODUCE, 3, 12), (METADATA, 0, 12), (API_VERSIONS, 0, 4), (INIT_PRODUCER_ID, 0, 5)]]  # fmt: skip
DELIVERY = Delivery(acks=-1, idempotent=True, request_bytes=1 << 20, patience=5.0, timeout=20.0)

# What may happen to a Produce request.
FAULTS = ("stored", "move", "cut before", "cut after", "REQUEST_TIMED_OUT", "KAFKA_STORAGE_ERROR", "half")


class Brokers:
    """Two brokers with a topic's partitions; the n-th Produce request meets the n-th of `faults`, then all is well."""

    def __init__(self, faults: Sequence[str]) -> None:
        self.faults = list(faults)
        self.leaders = [number % 2 for number in range(PARTITIONS)]
        self.logs: list[list[bytes]] = [[] for _ in range(PARTITIONS)]
        self.producers = [ProducerState() for _ in range(PARTITIONS)]
        self.requests = 0
        self.lock = threading.Lock()
        self.ports: list[int] = []

    def answer(self, node: int, request: bytearray) -> bytes | None:
        """The answer's frame; None: the connection is cut."""
        key, version = (int.from_bytes(request[at : at + 2], "big") for at in (0, 2))
        asked = CATALOG[key].request.decode(request, version, 100_000)
        with self.lock:
            values = {API_VERSIONS: self.introduce, METADATA: self.describe, INIT_PRODUCER_ID: self.number}.get(
                key, lambda _: self.produce(node, asked)
            )(asked)
        if values is None:
            return None
        parts = CATALOG[key].response.frame({"correlation_id": asked["correlation_id"], **values}, version)
        return b"".join(bytes(part) for part in parts)

    def introduce(self, _: dict[str, Any]) -> dict[str, Any]:
        return {"error_code": 0, "api_keys": SPOKEN}

    def number(self, _: dict[str, Any]) -> dict[str, Any]:
        return {"error_code": 0, "producer_id": 7, "producer_epoch": 0}

    def describe(self, asked: dict[str, Any]) -> dict[str, Any]:
        rows = [{"partition_index": number, "leader_id": leader, "replica_nodes": [], "isr_nodes": []}
                for number, leader in enumerate(self.leaders)]  # fmt: skip
        nodes = [{"node_id": node, "host": "127.0.0.1", "port": port} for node, port in enumerate(self.ports)]
        topics = [{"name": row["name"], "error_code": 0, "partitions": rows} for row in asked["topics"]]
        return {"brokers": nodes, "cluster_id": "c", "controller_id": 0, "topics": topics}

    def produce(self, node: int, asked: dict[str, Any]) -> dict[str, Any] | None:
        fault = self.faults.pop(0) if self.faults else "stored"
        self.requests += 1
        if fault == "cut before":
            return None
        if fault == "move":
            self.leaders = [1 - leader for leader in self.leaders]
        (topic,) = asked["topic_data"]
        rows = []
        for at, row in enumerate(topic["partition_data"]):
            refused = fault if fault in CODES and fault != "REQUEST_TIMED_OUT" else ""
            if fault == "half" and at % 2:
                refused = "NOT_ENOUGH_REPLICAS"
            error = refused or self.store(node, row["index"], row["records"])
            if fault == "REQUEST_TIMED_OUT":  # it may be stored all the same, and here it is
                error = fault
            rows.append({"index": row["index"], "error_code": CODES[error] if error else 0, "base_offset": 0})
        return None if fault == "cut after" else {"responses": [{"name": topic["name"], "partition_responses": rows}]}

    def store(self, node: int, partition: int, records: memoryview) -> str:
        if self.leaders[partition] != node:
            return "NOT_LEADER_OR_FOLLOWER"
        (batch,) = validate_batches(records, 1 << 20)  # a broker takes one batch for each partition
        log, known = self.logs[partition], self.producers[partition]
        if batch.producer_sequence is not None:
            try:
                if known.check(batch.producer_sequence) is not None:
                    return ""
            except KorvetError as error:  # of what is older than five batches a broker need not know anything
                return error.error.replace("DUPLICATE", "OUT_OF_ORDER")
            known.add(batch.producer_sequence, len(log), 0, 0.0)
        log += read_values(records)
        return ""


@contextmanager
def serving(brokers: Brokers) -> Iterator[list[Address]]:
    def handler(node: int) -> type[socketserver.StreamRequestHandler]:
        class Handler(socketserver.StreamRequestHandler):
            def handle(self) -> None:
                while head := self.rfile.read(4):
                    answer = brokers.answer(node, bytearray(self.rfile.read(int.from_bytes(head, "big"))))
                    if answer is None:
                        return
                    self.wfile.write(answer)

        return Handler

    class Server(socketserver.ThreadingTCPServer):
        daemon_threads = True

        def handle_error(self, request: Any, client_address: Any) -> None:
            if not isinstance(sys.exc_info()[1], ConnectionError):  # a client that has gone is no failure
                super().handle_error(request, client_address)

    servers = [Server(("127.0.0.1", 0), handler(node)) for node in (0, 1)]
    brokers.ports = [server.server_address[1] for server in servers]
    for server in servers:
        threading.Thread(target=server.serve_forever, args=(0.01,)).start()
    try:
        yield [Address("127.0.0.1", port) for port in brokers.ports]
    finally:
        for server in servers:
            server.shutdown()
            server.server_close()


class Forgetful(BlockingCluster):
    """Gives up all connections at given times, as one does that looks for another leader."""

    def __init__(self, endpoints: Sequence[Address], patience: float, forgets: Sequence[bool]) -> None:
        super().__init__(endpoints, patience)
        self.forgets = list(forgets)

    def leader(self, topic: str, partition: int) -> BlockingConnection:
        if self.forgets and self.forgets.pop(0):
            self.forget()
        return super().leader(topic, partition)


def produce(
    brokers: Brokers, pages: list[list[int]], delivery: Delivery = DELIVERY, forgets: Sequence[bool] = ()
) -> tuple[int, list[list[bytes]]]:
    """A batch of three records to each partition named, page after page: how many are stored, and what was sent."""
    sent: list[list[bytes]] = [[] for _ in range(PARTITIONS)]
    with serving(brokers) as endpoints:
        found = Forgetful(endpoints, delivery.patience, forgets)
        try:
            with Producer(found, delivery) as started:
                started.fetch_metadata(["t"])
                for page in pages:
                    given = []
                    following = list(started.sequences["t"])
                    for partition in page:
                        values = [b"%d-%d" % (partition, len(sent[partition]) + at) for at in range(3)]
                        sequence = following[partition] if delivery.idempotent else -1
                        data = make_batch(values, producer=(started.id, started.epoch, sequence))
                        given.append(("t", partition, 3, data))
                        following[partition] += 3
                        sent[partition] += values
                    started.send(given)
                started.flush()
                return started.records, sent
        finally:
            found.close()


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(producer, "RETRY_BACKOFF", 0.0)
    monkeypatch.setattr(cluster, "RETRY_BACKOFF", 0.0)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.lists(st.integers(0, PARTITIONS - 1), max_size=12), max_size=6),
    st.lists(st.sampled_from(FAULTS), max_size=10),
    st.lists(st.booleans(), max_size=20),
)
@example([[0] * 3, [0] * 9], [], [False] * 6 + [True])
@example([[2] * 2, [0] * 2 + [2] * 5], ["stored", "REQUEST_TIMED_OUT"] * 2, [])  # a batch in doubt twice
def test_every_record_once_and_in_order_whatever_fails(
    pages: list[list[int]], faults: list[str], forgets: list[bool]
) -> None:
    brokers = Brokers(faults)
    records, sent = produce(brokers, pages, forgets=forgets)
    assert brokers.logs == sent
    assert records == sum(map(len, sent))


def test_partitions_of_one_leader_share_a_request() -> None:
    brokers = Brokers([])
    produce(brokers, [[0, 1, 2], [0, 1, 2]])
    assert brokers.requests == 4  # two leaders, two pages


def test_a_request_has_an_upper_bound() -> None:
    brokers = Brokers([])
    produce(brokers, [[0, 2]], DELIVERY._replace(request_bytes=100))
    assert brokers.requests == 2  # both of one leader


def test_without_idempotence_nothing_is_numbered() -> None:
    brokers = Brokers(["KAFKA_STORAGE_ERROR"])
    records, sent = produce(brokers, [[0, 0, 1]], DELIVERY._replace(acks=1, idempotent=False))
    assert (records, sorted(brokers.logs[0])) == (9, sorted(sent[0]))


def test_a_refusal_names_topic_and_partition() -> None:
    with pytest.raises(BrokerError, match=r"3 records for partition 1 of topic 't': .*INVALID_RECORD"):
        produce(Brokers(["INVALID_RECORD"]), [[1]])


def test_a_batch_too_large_names_the_settings() -> None:
    with pytest.raises(ClientError, match=r"partition 0 of topic 't'.*max\.message\.bytes.*kafka\.batch\.size"):
        produce(Brokers(["MESSAGE_TOO_LARGE"]), [[0]])


def test_a_sequence_that_is_lost_for_good_is_an_error() -> None:
    with pytest.raises(BrokerError, match="OUT_OF_ORDER_SEQUENCE_NUMBER"):
        produce(Brokers(["stored", "OUT_OF_ORDER_SEQUENCE_NUMBER"]), [[0], [0]])


def test_trouble_that_does_not_end_is_an_error_in_time() -> None:
    with pytest.raises(ClientError, match=r"partition 2 of topic 't': not stored within kafka\.delivery\.timeout\.ms"):
        produce(Brokers(["KAFKA_STORAGE_ERROR"] * 100_000), [[2]], DELIVERY._replace(timeout=0.3))


def test_a_repetition_the_broker_no_longer_knows_by_offset_is_stored() -> None:
    records, _ = produce(Brokers(["DUPLICATE_SEQUENCE_NUMBER"]), [[0]])
    assert records == 3


def test_a_failed_task_leaves_no_answers_to_the_next() -> None:
    brokers = Brokers(["stored", "INVALID_RECORD"])
    with serving(brokers) as endpoints:
        found = BlockingCluster(endpoints, 5.0)
        with pytest.raises(BrokerError), Producer(found, DELIVERY) as first:
            first.fetch_metadata(["t"])
            for sequence in (0, 1, 2, 3):
                first.send([("t", 0, 1, make_batch([b"%d" % sequence], producer=(7, 0, sequence)))])
            first.flush()
        assert found.partitions(["t"]) == {"t": PARTITIONS}
        with Producer(found, DELIVERY._replace(idempotent=False)) as second:
            second.fetch_metadata(["t"])
            second.send([("t", 0, 1, make_batch([b"x"]))])
            second.flush()
            assert second.records == 1
        found.close()
