"""Rows of named columns, one Python value for each cell, into batches."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, final

from korvet_fast.errors import CodecError
from korvet_reference.compression import check_known
from korvet_reference.header import new_batch
from korvet_reference.records import Headers, Record, write_record

MASK_32 = (1 << 32) - 1
MASK_31 = (1 << 31) - 1
MOST_BYTES = 1 << 30


@final
class ArrowRecords:
    """Columns as `pyarrow.RecordBatch.to_pydict` gives them: value, and perhaps key, topic, partition, headers."""

    def __init__(self, batch: Mapping[str, Sequence[Any]], topic: str | None) -> None:
        """`topic`: where all rows go; None: to the topic in the column. Raises BAD_COLUMNS."""
        if "value" not in batch or (topic is None and "topic" not in batch):
            raise CodecError("BAD_COLUMNS", "a column is missing")
        self._columns = batch
        self._count = len(batch["value"])
        self._topic = topic
        self._topic_of = [topic] * self._count if topic is not None else list(batch["topic"])
        if None in self._topic_of:
            raise CodecError("BAD_COLUMNS", f"row {self._topic_of.index(None)}: the column topic is null")

    def topics(self) -> list[str]:
        """The distinct topics, in order of first use."""
        return [self._topic] if self._topic is not None else list(dict.fromkeys(map(str, self._topic_of)))

    def batches(
        self,
        sequences: Mapping[str, Sequence[int]],
        keyless: int,
        compression: int,
        max_bytes: int,
        max_record: int,
        producer_id: int,
        producer_epoch: int,
        now: int,
    ) -> list[tuple[str, int, int, bytearray]]:
        """(topic, partition, records, batch): full ones as they fill, then the rest by topic and partition.

        Raises UNKNOWN_COMPRESSION, BAD_VALUE (a topic without sequence numbers), BAD_COLUMNS, OVERSIZE (a record beyond
        `max_record`).
        """
        check_known(compression)
        if not all(sequences.get(topic) for topic in self.topics()):
            raise CodecError("BAD_VALUE", "a topic has no sequence numbers, or no partitions")
        producer = (producer_id, producer_epoch)
        most = min(max_bytes, MOST_BYTES)
        by_topic = {
            topic: _TopicBatches(topic, sequences[topic], keyless, compression, producer, now)
            for topic in self.topics()
        }
        found = []
        for row in range(self._count):
            record = Record(0, 0, self._cell("key", row), self._cell("value", row), self._headers(row))
            if len(write_record(record)) > max_record:
                raise CodecError("OVERSIZE", f"row {row}: a record of more than {max_record} bytes")
            batches = by_topic[str(self._topic_of[row])]
            partition = self._partition(row, len(batches.open))
            if partition is None and record.key is not None:
                partition = partition_for(record.key, len(batches.open))
            if partition is None:
                if batches.is_full(batches.keyless, record, most):
                    found += batches.close(batches.keyless)
                    batches.keyless = (batches.keyless + 1) % len(batches.open)
                partition = batches.keyless
            if batches.is_full(partition, record, most):
                found += batches.close(partition)
            batches.push(partition, record)
        for batches in by_topic.values():
            for partition in range(len(batches.open)):
                found += batches.close(partition)
        return found

    def _cell(self, name: str, row: int) -> bytes | None:
        cell = self._columns[name][row] if name in self._columns else None
        return cell.encode() if isinstance(cell, str) else cell

    def _partition(self, row: int, many: int) -> int | None:
        cell: int | None = self._columns["partition"][row] if "partition" in self._columns else None
        if cell is not None and not 0 <= cell < many:
            raise CodecError("BAD_COLUMNS", f"row {row}: there is no partition {cell}")
        return cell

    def _headers(self, row: int) -> Headers:
        found: Headers = []
        for pair in (self._columns["headers"][row] if "headers" in self._columns else None) or ():
            if pair is None or pair["key"] is None:
                raise CodecError("BAD_COLUMNS", f"row {row}: a header is null, or has no key")
            value = pair["value"]
            found.append((pair["key"].encode(), value.encode() if isinstance(value, str) else value))
        return found


@dataclass
class _Open:
    """The batch of a partition, as far as it is filled."""

    payload: bytearray = field(default_factory=bytearray)
    records: int = 0


class _TopicBatches:
    """The batches of a topic."""

    def __init__(
        self,
        topic: str,
        sequences: Sequence[int],
        keyless: int,
        compression: int,
        producer: tuple[int, int],
        now: int,
    ) -> None:
        self.open = [_Open() for _ in sequences]
        self.keyless = keyless % len(sequences)
        self._topic = topic
        self._sequences = list(sequences)
        self._compression = compression
        self._producer = producer
        self._now = now

    def is_full(self, partition: int, record: Record, most: int) -> bool:
        filled = self.open[partition]
        return filled.records > 0 and len(filled.payload) + len(_placed(record, filled.records)) > most

    def push(self, partition: int, record: Record) -> None:
        filled = self.open[partition]
        filled.payload += _placed(record, filled.records)
        filled.records += 1

    def close(self, partition: int) -> list[tuple[str, int, int, bytearray]]:
        filled, self.open[partition] = self.open[partition], _Open()
        if not filled.records:
            return []
        sequence = self._sequences[partition]
        self._sequences[partition] = (sequence + filled.records) & MASK_31
        origin = (*self._producer, sequence if self._producer[0] >= 0 else -1)
        times = [self._now] * filled.records
        batch = new_batch(bytes(filled.payload), self._compression, times, 0, filled.records - 1, origin)
        return [(self._topic, partition, filled.records, batch)]


def partition_for(key: bytes, many: int) -> int:
    """The partition for a key, as Kafka's clients choose it: murmur2 without the sign, modulo."""
    m = 0x5BD1E995
    found = 0x9747B28C ^ len(key)
    whole = len(key) - len(key) % 4
    for at in range(0, whole, 4):
        word = int.from_bytes(key[at : at + 4], "little") * m & MASK_32
        found = found * m & MASK_32 ^ (word ^ word >> 24) * m & MASK_32
    if rest := key[whole:]:
        found = (found ^ int.from_bytes(rest, "little")) * m & MASK_32
    found = (found ^ found >> 13) * m & MASK_32
    return ((found ^ found >> 15) & MASK_31) % many


def _placed(record: Record, place: int) -> bytes:
    return write_record(Record(0, place, record.key, record.value, record.headers))
