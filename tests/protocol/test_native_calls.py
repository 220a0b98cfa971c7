"""No work per record: the calls made for a batch are counted, and 10,000 records need as many as ten."""

import sys
from collections import Counter
from pathlib import Path
from types import FrameType
from typing import Any

from kafka_server import FETCH, PRODUCE, kafka_server, make_batch, run
from korvet_fast.wire.kafka.session import Session
from korvet_fast.wire.kafka.shapes.fetch import FETCH as FETCH_MESSAGE
from korvet_fast.wire.kafka.shapes.produce import PRODUCE as PRODUCE_MESSAGE

SIZE = 120_000  # bytes of all values: as small batches and large ones go different ways, both are of one size


def _produce(topic: str, records: int) -> bytearray:
    partition = {"index": 0, "records": make_batch(*[bytes(SIZE // records)] * records)}
    topics = [{"name": topic, "partition_data": [partition]}]
    values = {"api_key": PRODUCE, "api_version": 9, "correlation_id": 1, "acks": 1, "topic_data": topics}
    return bytearray(PRODUCE_MESSAGE.request.encode(values, 9))


def _fetch(topic: str) -> bytearray:
    partition = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1 << 20}
    topics = [{"topic": topic, "partitions": [partition]}]
    values = {"api_key": FETCH, "api_version": 12, "correlation_id": 2, "max_wait_ms": 0, "topics": topics}
    return bytearray(FETCH_MESSAGE.request.encode(values, 12))


Counts = tuple[int, Counter[str], Counter[str]]  # bytes of the reply, calls into the codec, calls of Python functions


async def _count(session: Session, frame: bytearray) -> Counts:
    """One request counted. Asked again if it had to wait for the disk: the second time the page cache has it."""
    while (counts := _try_count(session, frame)) is None:
        await session.handle(frame)
    return counts


def _try_count(session: Session, frame: bytearray) -> Counts | None:
    native: Counter[str] = Counter()
    python: Counter[str] = Counter()

    def note(frame: FrameType, event: str, function: Any) -> None:
        if event == "c_call":
            owner = getattr(function, "__self__", None)
            module = getattr(function, "__module__", None) or type(owner).__module__
            if "_native" in f"{module} {type(owner).__module__}":
                native[function.__name__] += 1
        elif event == "call":
            python[frame.f_code.co_qualname] += 1

    work = session.handle(frame)
    sys.setprofile(note)
    try:
        work.send(None)
    except StopIteration as end:
        return sum(map(len, end.value)), native, python
    finally:
        sys.setprofile(None)
    work.close()
    return None


def test_calls_do_not_grow_with_records(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with kafka_server(tmp_path) as server:
            client = await server.connect()
            dialect = server.dialect
            counted = []
            for topic, records in (("few", 10), ("many", 10_000)):
                await client.create(topic, durability="written")  # readable at once
                session = dialect.session("test")
                await _count(session, _produce(topic, 1))  # opens files
                await _count(session, _fetch(topic))
                request = _produce(topic, records)
                _, native, python = await _count(session, request)
                assert native == {"decode": 1, "validate_batch": 1, "assign_offsets": 1, "frame": 1}
                size, fetched, fetched_python = await _count(session, _fetch(topic))
                assert size > len(request)
                assert fetched["decode"] == fetched["frame"] == 1
                assert sum(fetched.values()) <= 4
                counted.append((python, fetched, fetched_python))
            assert counted[0] == counted[1]

    run(scenario)
