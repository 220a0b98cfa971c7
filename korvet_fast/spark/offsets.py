"""Offsets as people and checkpoints write them, `{"topic": {"0": 17}}`, and as the brokers know them.

Spark compares a stream's offsets as text, so what is written is in order: topics by name, partitions by number.
"""

import json
import logging
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from korvet_fast.client.connection import ClientError
from korvet_fast.client.reader import CONSUMER
from korvet_fast.client.refusal import check
from korvet_fast.errors import SettingError
from korvet_fast.spark.cluster import Cluster, Place, passes
from korvet_fast.wire.kafka.shapes.offsets import LIST_OFFSETS

LATEST, EARLIEST = -1, -2  # in place of a number, in options and on the wire
NOWHERE = -1  # what a broker answers if no record is as late
LARGEST = (1 << 63) - 1
EXAMPLE = '{"topic": {"0": 17, "1": -2}}'

Offsets = dict[Place, int]

logger = logging.getLogger(__name__)


class Bound(NamedTuple):
    """Where a read starts or ends, not yet in numbers.

    `option`: who says so. `timed`: the numbers are times in ms, and the first record as late is meant; else they are
    offsets, `LATEST` or `EARLIEST`. `everywhere`: one number for all partitions, or None: `each` has one for each.
    """

    option: str
    timed: bool
    everywhere: int | None
    each: Mapping[Place, int]

    def numbers(self, places: Iterable[Place]) -> Offsets:
        """This bound's number for each of the partitions. Raises `SettingError` unless it names exactly those."""
        if self.everywhere is not None:
            return dict.fromkeys(places, self.everywhere)
        wanted = set(places)
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


class Question(NamedTuple):
    """How brokers are asked for offsets. `committed`: only what no open transaction may still change.

    `retries` more attempts after one that failed, `pause` seconds apart.
    """

    committed: bool
    retries: int
    pause: float


def read_json(text: str, lowest: int) -> Offsets:
    """`{"topic": {"0": 17}}` -> numbers from `lowest` up. Raises `ValueError` saying what is wanted instead."""
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


def read_assignment(text: str) -> tuple[Place, ...]:
    """`{"topic": [0, 1]}` -> partitions, in order. Raises `ValueError` saying what is wanted instead."""
    example = '{"topic": [0, 1]}'
    found: set[Place] = set()
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


def write(offsets: Mapping[Place, int]) -> dict[str, dict[str, int]]:
    """For a checkpoint: by topic and partition, always in the same order."""
    written: dict[str, dict[str, int]] = {}
    for (topic, partition), offset in sorted(offsets.items()):
        written.setdefault(topic, {})[str(partition)] = offset
    return written


def read(written: Mapping[str, Mapping[str, int]]) -> Offsets:
    """What `write` wrote."""
    return {(topic, int(partition)): offset for topic, rows in written.items() for partition, offset in rows.items()}


def resolve(cluster: Cluster, bound: Bound, places: Iterable[Place], question: Question, strict: bool) -> Offsets:
    """The offsets a bound means now. Raises `SettingError` and `ClientError`.

    `strict`: a time after the last record is an error; otherwise it means the end of the partition.
    """
    numbers = bound.numbers(places)
    if not bound.timed:
        named = {place: number for place, number in numbers.items() if number < 0}
        return numbers | ask(cluster, named, question)
    found = ask(cluster, numbers, question)
    late = [place for place, offset in found.items() if offset == NOWHERE]
    if late and strict:
        (topic, partition), ms = late[0], numbers[late[0]]
        raise SettingError(
            f"option {bound.option!r} asks for {ms} ms, and partition {partition} of topic {topic!r} has no record "
            f"that late: give an earlier time, or set 'startingOffsetsByTimestampStrategy' to 'latest' for its end"
        )
    return found | ask(cluster, dict.fromkeys(late, LATEST), question)


def ask(cluster: Cluster, times: Mapping[Place, int], question: Question) -> Offsets:
    """ListOffsets: for each partition `LATEST`, `EARLIEST`, or a time in ms (`NOWHERE`: no record as late).

    Raises `ClientError` when all attempts failed.
    """
    attempts = question.retries + 1
    for attempt in range(attempts):
        leaders = cluster.by_leader(times)
        try:
            return _ask_leaders(cluster, leaders.values(), times, question.committed)
        except ClientError as error:
            cluster.forget()
            if attempt == question.retries or not passes(error):
                raise
            logger.warning("asking for offsets once more, after attempt %d of %d: %s", attempt + 1, attempts, error)
        time.sleep(question.pause)
    raise AssertionError("the last attempt returns or raises")


def _ask_leaders(
    cluster: Cluster, leaders: Iterable[Sequence[Place]], times: Mapping[Place, int], committed: bool
) -> Offsets:
    found: Offsets = {}
    for places in leaders:
        topics: dict[str, list[dict[str, int]]] = {}
        for place in places:
            topics.setdefault(place[0], []).append({"partition_index": place[1], "timestamp": times[place]})
        asked = [{"name": topic, "partitions": rows} for topic, rows in topics.items()]
        answer = cluster.leader(*places[0]).request(
            LIST_OFFSETS, {"replica_id": CONSUMER, "isolation_level": int(committed), "topics": asked}
        )
        for topic in answer["topics"]:
            for row in topic["partitions"]:
                place = (topic["name"], row["partition_index"])
                check(f"the offsets of partition {place[1]} of topic {place[0]!r}", row["error_code"])
                found[place] = row["offset"]
    return found
