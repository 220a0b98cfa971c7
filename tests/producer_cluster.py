"""A Kafka cluster under a virtual clock, for the producer's stages: it stores what leaders accept, and nothing else.

The logs are shared by all brokers, as those of fully replicated partitions: a new leader has everything. Sequence rules
are Kafka's (ProducerAppendInfo). Batches are read by the native codec, so what is not a legal batch fails the test.
"""

from collections import deque
from dataclasses import dataclass, field
from typing import Any

from korvet_fast._native import batch_headers, to_columns, validate_batch
from korvet_fast.endpoint import Address

OK, CORRUPT, UNKNOWN_TOPIC, NOT_LEADER, TIMED_OUT, TOO_LARGE, TOO_FEW, TOO_FEW_AFTER = 0, 2, 3, 6, 7, 10, 19, 20
TOPIC_AUTHORIZATION_FAILED, OUT_OF_ORDER, DUPLICATE, FENCED, INVALID_RECORD = 29, 45, 46, 47, 87
REMEMBERED = 5

TopicPartition = tuple[str, int]


@dataclass
class Producer:
    epoch: int
    next: int = 0
    batches: deque[tuple[int, int, int]] = field(default_factory=lambda: deque(maxlen=REMEMBERED))


@dataclass
class Log:
    values: list[bytes] = field(default_factory=list)
    producers: dict[int, Producer] = field(default_factory=dict)


class SimulatedCluster:
    """`leaders`: None while an election runs. `hidden`: topics that no broker knows at the moment.

    `refused`: topics that the producer may not write.
    """

    def __init__(self, nodes: int = 3, partitions: int = 3, topics: tuple[str, ...] = ("t", "u")) -> None:
        self.partitions = partitions  # of each topic
        self.addresses = [Address(f"node{node}", 9092) for node in range(nodes)]
        self.leaders: dict[TopicPartition, int | None] = {}
        self.logs: dict[TopicPartition, Log] = {}
        self.hidden: set[str] = set()
        self.refused: set[str] = set()
        self.max_batch = 1 << 20
        self.producer_ids = 0
        self.first_epoch = 0
        self.throttle = 0
        self.refuses_ids = 0  # the error code of the answers to InitProducerId
        self.answers_duplicates = False  # with an error code, where the offset is not known any more
        for topic in topics:
            for index in range(partitions):
                self.leaders[topic, index] = index % nodes
                self.logs[topic, index] = Log()

    def metadata(self, names: list[str]) -> dict[str, Any]:
        topics = []
        for name in names:
            away = name in self.hidden | self.refused
            found = sorted(index for topic, index in self.leaders if topic == name and not away)
            rows = [self._row(name, index) for index in found]
            code = TOPIC_AUTHORIZATION_FAILED if name in self.refused else 0 if rows else UNKNOWN_TOPIC
            topics.append({"name": name, "topic_id": bytes(16), "error_code": code, "partitions": rows})
        brokers = [{"node_id": n, "host": each.host, "port": each.port} for n, each in enumerate(self.addresses)]
        return {"brokers": brokers, "controller_id": 0, "topics": topics}

    def init_producer_id(self) -> dict[str, Any]:
        if self.refuses_ids:
            return {"error_code": self.refuses_ids, "producer_id": -1, "producer_epoch": -1}
        self.producer_ids += 1
        return {"error_code": 0, "producer_id": self.producer_ids, "producer_epoch": self.first_epoch}

    def produce(self, node: int, where: TopicPartition, data: bytes, before: int = 0, after: int = 0) -> dict[str, Any]:
        """Append a batch; the row of the answer. `before`, `after`: an error code instead of, or behind, the append."""
        code, offset = before, -1
        if not code:
            code, offset = self._append(node, where, data)
        code = code or after
        return {
            "index": where[1],
            "error_code": code,
            "base_offset": -1 if code else offset,
            "log_append_time_ms": -1,
            "error_message": None,
        }

    def answer(self, rows: list[tuple[str, dict[str, Any]]]) -> dict[str, Any]:
        responses = [{"name": name, "partition_responses": [row]} for name, row in rows]
        return {"responses": responses, "throttle_time_ms": self.throttle}

    def _row(self, topic: str, index: int) -> dict[str, Any]:
        leader = self.leaders[topic, index]
        return {"partition_index": index, "leader_id": -1 if leader is None else leader, "leader_epoch": 0}

    def _append(self, node: int, where: TopicPartition, data: bytes) -> tuple[int, int]:
        if where[0] in self.hidden or where not in self.logs:
            return UNKNOWN_TOPIC, -1
        if self.leaders[where] != node:
            return NOT_LEADER, -1
        if len(data) > self.max_batch:
            return TOO_LARGE, -1
        validate_batch(data, 1 << 30)
        (header,) = batch_headers(data, True)
        log = self.logs[where]
        numbers = (header.producer_id, header.producer_epoch, header.base_sequence, header.count)
        code, offset = self._check(log, *numbers) if header.producer_id >= 0 else (OK, None)
        if code or offset is not None:
            return code, -1 if offset is None else offset
        offset = len(log.values)
        self._remember(log, numbers, offset)
        columns = to_columns(data, 1 << 30)
        ends = memoryview(columns["value_offsets"])
        values = bytes(columns["value"])
        log.values += [values[ends[at] : ends[at + 1]] for at in range(header.count)]
        return OK, offset

    def _check(self, log: Log, producer_id: int, epoch: int, first: int, count: int) -> tuple[int, int | None]:
        """An error code, or the offset at which the batch was stored before."""
        known = log.producers.get(producer_id)
        if known is None:
            return OK, None  # Kafka accepts any first sequence of a producer it does not know
        if epoch < known.epoch:
            return FENCED, None
        if epoch > known.epoch:
            return (OUT_OF_ORDER, None) if first else (OK, None)
        for sequence, length, offset in known.batches:
            if (sequence, length) == (first, count):
                return OK, offset
        if first < known.next and self.answers_duplicates:
            return DUPLICATE, None
        return (OK, None) if first == known.next else (OUT_OF_ORDER, None)

    def _remember(self, log: Log, numbers: tuple[int, int, int, int], offset: int) -> None:
        producer_id, epoch, first, count = numbers
        if producer_id < 0:
            return
        known = log.producers.get(producer_id)
        if known is None or known.epoch != epoch:
            known = log.producers[producer_id] = Producer(epoch)
        known.next = (first + count) % (1 << 31)
        known.batches.append((first, count, offset))
