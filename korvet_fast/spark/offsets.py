"""Offsets as people and checkpoints write them, `{"topic": {"0": 17}}`, and offsets that brokers are asked for.

Spark compares the offsets of a stream as text, so `write` has an order: topics by name, partitions by number.
"""

import json
import logging
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from korvet_fast.client.protocol.errors import ClientError, is_retriable
from korvet_fast.client.protocol.metadata import TopicPartition
from korvet_fast.client.protocol.requests import list_offsets_request, read_offsets
from korvet_fast.errors import SettingError
from korvet_fast.spark.cluster import BlockingCluster
from korvet_fast.types import LATEST
from korvet_fast.wire.kafka.shapes.offsets import LIST_OFFSETS

NO_OFFSET = -1  # the answer of a broker if no record is as late as a time
LARGEST = (1 << 63) - 1
EXAMPLE = '{"topic": {"0": 17, "1": -2}}'

Offsets = dict[TopicPartition, int]

logger = logging.getLogger(__name__)


class OffsetLimit(NamedTuple):
    """Where a read starts or ends, as an option says it.

    `option`: its name. `timed`: the numbers are times in ms, and each means the first record as late; otherwise they
    are offsets, `LATEST` or `EARLIEST`. `everywhere`: one number for all partitions; None: `each` has one for each.
    """

    option: str
    timed: bool
    everywhere: int | None
    each: Mapping[TopicPartition, int]

    def numbers(self, partitions: Iterable[TopicPartition]) -> Offsets:
        """The number of each partition. Raises `SettingError` if `each` does not name exactly these partitions."""
        if self.everywhere is not None:
            return dict.fromkeys(partitions, self.everywhere)
        wanted = set(partitions)
        missing, strange = sorted(wanted - set(self.each)), sorted(set(self.each) - wanted)
        if missing:
            topic, number = missing[0]
            raise SettingError(
                f"option {self.option!r} says nothing about partition {number} of topic {topic!r}: name every "
                f"partition that is read" + ("" if self.timed else ", -2 for its earliest offset and -1 for its latest")
            )
        if strange:
            topic, number = strange[0]
            raise SettingError(
                f"option {self.option!r} names partition {number} of topic {topic!r}, which is not one of those read"
            )
        return dict(self.each)


class OffsetQuery(NamedTuple):
    """How brokers are asked for offsets. `committed`: the end is where no open transaction may change a record.

    `retries`: attempts after the first one; `pause`: seconds between two attempts.
    """

    committed: bool
    retries: int
    pause: float


def read_json(text: str, lowest: int) -> Offsets:
    """`{"topic": {"0": 17}}` -> numbers from `lowest` on. Raises `ValueError` with what is wanted instead."""
    found: Offsets = {}
    for topic, partitions in _read_object(text, EXAMPLE).items():
        if not isinstance(partitions, dict):
            raise ValueError(f"JSON like {EXAMPLE}; topic {topic!r} has no partitions in it")
        for name, number in partitions.items():
            if not name.isascii() or not name.isdigit():
                raise ValueError(f"JSON like {EXAMPLE}; {name!r} of topic {topic!r} is no partition number")
            if type(number) is not int or not lowest <= number <= LARGEST:
                raise ValueError(
                    f"JSON like {EXAMPLE}; partition {name} of topic {topic!r} has {json.dumps(number)} instead of a "
                    f"number from {lowest} on"
                )
            found[topic, int(name)] = number
    return found


def read_assignment(text: str) -> tuple[TopicPartition, ...]:
    """`{"topic": [0, 1]}` -> partitions, in order. Raises `ValueError` with what is wanted instead."""
    example = '{"topic": [0, 1]}'
    found: set[TopicPartition] = set()
    for topic, numbers in _read_object(text, example).items():
        if not isinstance(numbers, list) or not all(type(number) is int and number >= 0 for number in numbers):
            raise ValueError(f"JSON like {example}; topic {topic!r} has no list of partition numbers")
        found.update((topic, number) for number in numbers)
    if not found:
        raise ValueError(f"JSON like {example}, with one partition at least")
    return tuple(sorted(found))


def _read_object(text: str, example: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except ValueError as error:
        raise ValueError(f"JSON like {example}; this is none: {error}") from None
    if not isinstance(found, dict):
        raise ValueError(f"JSON like {example}")
    return found


def write(offsets: Mapping[TopicPartition, int]) -> dict[str, dict[str, int]]:
    """Offsets for a checkpoint: by topic and partition, always in the same order."""
    written: dict[str, dict[str, int]] = {}
    for (topic, partition), offset in sorted(offsets.items()):
        written.setdefault(topic, {})[str(partition)] = offset
    return written


def read(written: Mapping[str, Mapping[str, int]]) -> Offsets:
    """The offsets that `write` wrote."""
    return {(topic, int(partition)): offset for topic, rows in written.items() for partition, offset in rows.items()}


def resolve(
    cluster: BlockingCluster, limit: OffsetLimit, partitions: Iterable[TopicPartition], query: OffsetQuery, strict: bool
) -> Offsets:
    """The offsets that a limit means now. Raises `SettingError` and `ClientError`.

    `strict`: a time after the last record is an error; otherwise such a time means the end of the partition.
    """
    numbers = limit.numbers(partitions)
    if not limit.timed:
        named = {each: number for each, number in numbers.items() if number < 0}
        return numbers | list_offsets(cluster, named, query)
    found = list_offsets(cluster, numbers, query)
    late = [each for each, offset in found.items() if offset == NO_OFFSET]
    if late and strict:
        (topic, partition), ms = late[0], numbers[late[0]]
        raise SettingError(
            f"option {limit.option!r} asks for {ms} ms, and partition {partition} of topic {topic!r} has no record "
            f"that late: give an earlier time, or set 'startingOffsetsByTimestampStrategy' to 'latest' for its end"
        )
    return found | list_offsets(cluster, dict.fromkeys(late, LATEST), query)


def list_offsets(cluster: BlockingCluster, times: Mapping[TopicPartition, int], query: OffsetQuery) -> Offsets:
    """ListOffsets: for each partition `LATEST`, `EARLIEST`, or a time in ms (`NO_OFFSET`: no record is as late).

    Raises `ClientError` when all attempts failed.
    """
    attempts = query.retries + 1
    for attempt in range(attempts):
        leaders = cluster.by_leader(times)
        try:
            return _list_offsets(cluster, leaders.values(), times, query.committed)
        except ClientError as error:
            cluster.forget()
            if attempt == query.retries or not is_retriable(error):
                raise
            logger.warning("asking for offsets once more, after attempt %d of %d: %s", attempt + 1, attempts, error)
        time.sleep(query.pause)
    raise AssertionError("the last attempt returns or raises")


def _list_offsets(
    cluster: BlockingCluster,
    leaders: Iterable[Sequence[TopicPartition]],
    times: Mapping[TopicPartition, int],
    committed: bool,
) -> Offsets:
    found: Offsets = {}
    for partitions in leaders:
        request = list_offsets_request({each: times[each] for each in partitions}, committed)
        found |= read_offsets(cluster.leader(*partitions[0]).request(LIST_OFFSETS, request))
    return found
