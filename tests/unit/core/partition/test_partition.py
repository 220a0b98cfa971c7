"""Appending to and reading from a partition, over the embedded store."""

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from batches import NOW, make_batch, read_values
from core_world import World, put, put_values, read_all, run_broker, settle
from korvet_fast import _native
from korvet_fast.core.fetch.delayed_fetch import DelayedFetch
from korvet_fast.core.partition.partition import Partition
from korvet_fast.errors import KorvetError
from korvet_fast.types import LATEST

Body = Callable[[World, Partition], Coroutine[Any, Any, None]]


def over(data: Path, body: Body, **configs: str) -> None:
    """Run `body` with a broker and a partition of a topic with these settings (`_` for `.`)."""

    async def run() -> None:
        async with run_broker(data) as world:
            own = {name.replace("_", "."): value for name, value in configs.items()}
            topic = await world.broker.topics.create("t", 1, own)
            await body(world, topic.partitions[0])

    asyncio.run(run())


def refuse(partition: Partition, batch: bytearray, acks: int = 1) -> str:
    """The error with which a batch is refused, which must leave nothing behind."""
    end = partition.log.end
    with pytest.raises(KorvetError) as caught:
        put(partition, batch, acks)
    assert partition.log.end == end
    return caught.value.error


def test_offsets_are_dense_and_what_is_read_is_what_was_written(tmp_path: Path) -> None:
    async def body(world: World, partition: Partition) -> None:
        assert [put_values(partition, b"a"), put_values(partition, b"b", b"c"), put_values(partition, b"d")] == [
            0,
            1,
            3,
        ]
        assert (partition.log.start, partition.log.end) == (0, 4)
        await settle(put(partition, make_batch([b"e"]), acks=-1))
        assert partition.high_watermark.offset == 5
        assert await read_all(partition) == [b"a", b"b", b"c", b"d", b"e"]
        assert await read_all(partition, 2) == [b"b", b"c", b"d", b"e"]
        assert (await partition.read(5, 100)) == ([], 5)
        page = await partition.read(0, 1)
        assert [read_values(part) for part in page.data] == [[b"a"]]
        assert page.next == 1

    over(tmp_path, body)


def test_a_stored_batch_carries_its_offset_and_the_leader_epoch(tmp_path: Path) -> None:
    async def body(world: World, partition: Partition) -> None:
        put_values(partition, b"a", b"b")
        await settle(put(partition, make_batch([b"c"], times=[NOW - 5]), acks=-1))
        page = await partition.read(2, 100)
        (batch,) = _native.batch_headers(page.data[0], True)
        assert (batch.base_offset, batch.leader_epoch, batch.max_timestamp) == (
            2,
            0,
            NOW - 5,
        )

    over(tmp_path, body)


@pytest.mark.parametrize("offset", [-1, 4, 2**62])
def test_reading_outside_is_out_of_range(tmp_path: Path, offset: int) -> None:
    async def body(world: World, partition: Partition) -> None:
        put_values(partition, b"a", b"b", b"c")
        with pytest.raises(KorvetError, match="OFFSET_OUT_OF_RANGE"):
            await partition.read(offset, 100)

    over(tmp_path, body)


def test_consumers_read_what_is_durable_and_no_more(tmp_path: Path) -> None:
    async def body(world: World, partition: Partition) -> None:
        held = world.store.hold = []
        first = put(partition, make_batch([b"a"]), acks=-1)
        second = put(partition, make_batch([b"b"]), acks=1)
        assert first.done is held[0]
        assert second.done is None
        assert (partition.log.end, partition.high_watermark.offset) == (2, 0)
        assert (await partition.read(0, 100)) == ([], 0)
        assert (await partition.read(1, 100)) == ([], 1)
        held[0].set_result(None)
        await settle(first)
        assert partition.high_watermark.offset == 1
        assert await read_all(partition) == [b"a"]
        held[1].set_result(None)

    over(tmp_path, body)


def test_what_the_page_cache_has_counts_as_durable_where_the_topic_says_so(tmp_path: Path) -> None:
    async def body(world: World, partition: Partition) -> None:
        assert put(partition, make_batch([b"a"]), acks=-1).done is None
        assert partition.high_watermark.offset == 1

    over(tmp_path, body, durability="written")


def test_a_repetition_is_answered_with_the_first_offset_and_its_durability(tmp_path: Path) -> None:
    async def body(world: World, partition: Partition) -> None:
        await settle(put(partition, make_batch([b"before"]), acks=-1))
        held = world.store.hold = []
        first = put(partition, make_batch([b"a", b"b"], producer=(7, 0, 0)), acks=-1)
        again = put(partition, make_batch([b"a", b"b"], producer=(7, 0, 0)), acks=-1)
        assert (again.base_offset, again.done) == (first.base_offset, first.done)
        assert put(partition, make_batch([b"a", b"b"], producer=(7, 0, 0)), acks=1).done is None
        held[0].set_result(None)
        await settle(first)
        assert put(partition, make_batch([b"a", b"b"], producer=(7, 0, 0)), acks=-1).done is None
        assert await read_all(partition) == [b"before", b"a", b"b"]
        world.store.hold = None
        assert refuse(partition, make_batch([b"d"], producer=(7, 0, 3))) == "OUT_OF_ORDER_SEQUENCE_NUMBER"
        assert put(partition, make_batch([b"c"], producer=(7, 0, 2))).base_offset == 3

    over(tmp_path, body)


def test_what_a_topic_does_not_take(tmp_path: Path) -> None:
    async def body(world: World, partition: Partition) -> None:
        assert refuse(partition, make_batch([b"x" * 200])) == "MESSAGE_TOO_LARGE"
        assert refuse(partition, make_batch(times=[NOW + 11])) == "INVALID_TIMESTAMP"
        put(partition, make_batch(times=[NOW + 10]))
        put(partition, make_batch(times=[-1]))
        stamped = make_batch()
        _native.assign_offsets(stamped, 0, 0, None, NOW)
        assert refuse(partition, stamped) == "INVALID_TIMESTAMP"

    over(tmp_path, body, max_message_bytes="150", message_timestamp_after_max_ms="10")


def test_a_refused_timestamp_is_told_with_the_clock_to_look_at(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def body(world: World, partition: Partition) -> None:
        for _ in range(5):  # the broker's clock is a day behind those of its producers
            assert refuse(partition, make_batch(times=[NOW + 86_400_000])) == "INVALID_TIMESTAMP"
        assert caplog.text.count("look at this machine's clock") == 1
        assert "message.timestamp.after.max.ms" in caplog.text

    over(tmp_path, body)


def test_acks_all_is_refused_where_more_copies_are_asked_for_than_are_kept(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def body(world: World, partition: Partition) -> None:
        assert refuse(partition, make_batch(), acks=-1) == "NOT_ENOUGH_REPLICAS"
        assert refuse(partition, make_batch(), acks=-1) == "NOT_ENOUGH_REPLICAS"
        assert caplog.text.count(f"{partition.name}: acks=all is refused: ") == 1
        assert "min.insync.replicas=2, and files of our own are one copy. Set it to 1" in caplog.text
        assert put(partition, make_batch(), acks=1).base_offset == 0

    over(tmp_path, body, min_insync_replicas="2")


def test_the_broker_stamps_times_where_the_topic_says_so(tmp_path: Path) -> None:
    async def body(world: World, partition: Partition) -> None:
        world.clock.ms = NOW + 77
        first = put(partition, make_batch(times=[5], producer=(1, 0, 0)), acks=-1)
        await settle(first)
        assert first.log_append_time == NOW + 77
        world.clock.ms = NOW + 99
        assert put(partition, make_batch(times=[5], producer=(1, 0, 0)), acks=-1).log_append_time == NOW + 77
        (batch,) = _native.batch_headers((await partition.read(0, 100)).data[0], True)
        assert (batch.log_append_time, batch.max_timestamp) == (True, NOW + 77)
        assert await partition.log.find_time(NOW + 77) == (0, NOW + 77)

    over(tmp_path, body, message_timestamp_type="LogAppendTime")


def test_deleted_records_are_gone_and_the_rest_is_not(tmp_path: Path) -> None:
    async def body(world: World, partition: Partition) -> None:
        for value in (b"a", b"b", b"c"):
            put_values(partition, value, value)
        await settle(put(partition, make_batch([b"d"]), acks=-1))
        assert await partition.delete_records(3) == 3
        assert await partition.delete_records(1) == 3
        assert partition.log.start == 3
        assert await read_all(partition, 3) == [b"b", b"b", b"c", b"c", b"d"]
        with pytest.raises(KorvetError, match="OFFSET_OUT_OF_RANGE"):
            await partition.read(2, 100)
        for wrong in (-2, 8):
            with pytest.raises(KorvetError, match="OFFSET_OUT_OF_RANGE"):
                await partition.delete_records(wrong)
        assert await partition.delete_records(LATEST) == 7
        assert put_values(partition, b"e") == 7

    over(tmp_path, body)


def test_a_long_poll_is_woken_by_an_append_and_by_deletions(tmp_path: Path) -> None:
    async def body(world: World, partition: Partition) -> None:
        for act in (
            lambda: settle(put(partition, make_batch([b"a" * 50]), acks=-1)),
            lambda: partition.delete_records(LATEST),
            lambda: world.broker.topics.delete(world.broker.topics.get("t") or pytest.fail("gone")),
        ):
            with DelayedFetch([(partition.log, partition.log.end)], 50) as watch:
                waiting = asyncio.create_task(watch.wait(60))
                await asyncio.sleep(0)
                await act()
                assert await waiting
        with pytest.raises(KorvetError, match="UNKNOWN_TOPIC_OR_PARTITION"):
            await partition.read(1, 100)
        assert refuse(partition, make_batch()) == "UNKNOWN_TOPIC_OR_PARTITION"

    over(tmp_path, body)


def test_readable_is_exact_near_the_end_and_plausible_elsewhere(tmp_path: Path) -> None:
    async def body(world: World, partition: Partition) -> None:
        size = len(make_batch([b"abc"]))
        for _ in range(500):
            put_values(partition, b"abc")
        assert partition.log.available_bytes(500) == 0
        assert partition.log.available_bytes(490) == 10 * size
        assert partition.log.available_bytes(0) == 500 * size
        assert partition.log.available_bytes(250) == 250 * size

    over(tmp_path, body, durability="written")
