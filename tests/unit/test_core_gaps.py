"""Offsets that follow the clock, and records that other programs wrote."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from batches import NOW, make_batch
from core_world import SharedWorld as Scene
from core_world import put, put_values, read_all, run_shared, send
from korvet_fast.core.types import LATEST
from korvet_fast.core.watch import Watch
from korvet_fast.errors import KorvetError
from korvet_fast.store.interface import Stale
from shared_store import Server, first_record

FIRST = NOW << 10


def over(body: Callable[[Scene], Coroutine[Any, Any, None]], **configs: str) -> None:
    """Run `body` with a broker over a shared store, and a partition of a topic with these settings (`_` for `.`)."""

    async def run() -> None:
        async with run_shared(Server()) as scene:
            await scene.create(**configs)
            await body(scene)

    asyncio.run(run())


def test_an_offset_is_the_time_and_a_sequence_number() -> None:
    async def body(scene: Scene) -> None:
        partition = scene.partition
        assert (partition.start, partition.end) == (0, 0)
        assert await send(partition, b"a", b"b") == FIRST
        assert (partition.start, partition.end, partition.high_watermark) == (FIRST, FIRST + 2, FIRST + 2)
        assert await send(partition, b"c") == FIRST + 2  # the same ms
        scene.clock.ms += 1
        assert await send(partition, b"d") == FIRST + 1024
        scene.clock.ms -= 1000  # offsets do not follow a clock that goes back
        assert await send(partition, b"e") == FIRST + 1025
        assert await read_all(partition) == [b"a", b"b", b"c", b"d", b"e"]
        assert await read_all(partition, FIRST + 1) == [b"a", b"b", b"c", b"d", b"e"]  # whole batches
        assert await read_all(partition, FIRST + 3) == [b"d", b"e"]

    over(body)


def test_the_number_of_bits_is_the_topics() -> None:
    async def body(scene: Scene) -> None:
        assert await send(scene.partition, b"a") == NOW << 4

    over(body, offset_sequence_bits="4")


def test_batches_have_dense_offsets_whatever_the_clock_says() -> None:
    async def body(scene: Scene) -> None:
        assert [await send(scene.partition, b"a", b"b"), await send(scene.partition, b"c")] == [0, 2]
        assert scene.store.forms["t:0"] == (10, False, 0)

    over(body, storage_layout="batches")


def test_offsets_below_the_start_may_be_read_unless_something_was_there() -> None:
    async def body(scene: Scene) -> None:
        partition = scene.partition
        assert await read_all(partition, 0) == []
        await send(partition, b"a")
        scene.clock.ms += 1
        await send(partition, b"b")
        assert await read_all(partition, 0) == [b"a", b"b"]
        assert await read_all(partition, 5) == [b"a", b"b"]
        assert await partition.delete_records(FIRST + 1) == FIRST + 1024
        for offset in (0, FIRST):
            with pytest.raises(KorvetError, match="OFFSET_OUT_OF_RANGE"):
                await partition.read(offset, 100)
        assert await read_all(partition, FIRST + 1) == [b"b"]
        assert await partition.delete_records(LATEST) == FIRST + 1025
        assert await read_all(partition, FIRST + 1025) == []

    over(body)


def test_compression_is_for_reads_and_batches_are_kept_as_they_come() -> None:
    async def body(scene: Scene) -> None:
        assert scene.store.forms["t:0"] == (10, True, 4)
        assert scene.partition.config.compression is None
        topic = scene.broker.topics.get("t")
        assert topic is not None
        await scene.broker.topics.alter(topic, {"compression.type": "gzip"})
        assert scene.store.forms["t:0"] == (10, True, 1)

    over(body, compression_type="zstd")


def test_another_programs_records_are_seen_after_a_look() -> None:
    async def body(scene: Scene) -> None:
        partition = scene.partition
        await partition.look()
        first = scene.server.add("t:0", FIRST, b"foreign")
        await partition.look()
        assert partition.end == 0  # what is known is fresh enough
        scene.later()
        await partition.look()
        assert (partition.start, partition.end, partition.high_watermark) == (first, first + 1, first + 1)
        assert await read_all(partition) == [b"foreign"]
        assert await send(partition, b"ours") == first + 1
        scene.later()
        scene.server.stream("t:0").entries.clear()  # XTRIM by hand
        scene.server.stream("t:0").removed = first + 2
        await partition.look()
        assert (partition.start, partition.end) == (first + 2, first + 2)

    over(body)


def test_a_long_poll_is_woken_by_another_program() -> None:
    async def body(scene: Scene) -> None:
        partition = scene.partition
        for _ in range(2):
            end = partition.end
            with Watch([(partition, end)], 1) as watch:
                waiting = asyncio.create_task(watch.wait(60))
                await asyncio.sleep(0)
                scene.server.add("t:0", FIRST, b"foreign")
                assert await waiting
            assert await read_all(partition, end) == [b"foreign"]
        await send(partition, b"ours")
        assert partition.readable(partition.end) == 0

    over(body)


def test_a_long_poll_goes_on_where_the_store_cannot_say_what_there_is(caplog: pytest.LogCaptureFixture) -> None:
    async def body(scene: Scene) -> None:
        with Watch([(scene.partition, 0)], 1) as watch:
            waiting = asyncio.create_task(watch.wait(60))
            await asyncio.sleep(0)
            scene.server.down = True
            scene.server.add("t:0", FIRST, b"foreign")
            assert await waiting
        scene.server.down = False
        assert "cannot be seen: the server is down" in caplog.text

    over(body)


def test_a_place_that_another_program_took_is_given_up_and_the_next_one_is_free() -> None:
    async def body(scene: Scene) -> None:
        partition = scene.partition
        await send(partition, b"0", producer=(7, 0, 0))
        epoch = partition.leader_epoch
        scene.server.add("t:0", FIRST + 100, b"foreign")
        sent = [put(partition, make_batch([b"%d" % number], producer=(7, 0, number)), acks=-1) for number in (1, 2)]
        for appended in sent:
            assert appended.done is not None
            with pytest.raises(Stale) as caught:
                await asyncio.shield(appended.done)
            assert partition.explain(caught.value).fault.name == "NOT_LEADER_OR_FOLLOWER"
        with pytest.raises(KorvetError, match="NOT_LEADER_OR_FOLLOWER"):
            put(partition, make_batch([b"1"], producer=(7, 0, 1)))
        await partition.retry()
        offsets = [await send(partition, b"%d" % number, producer=(7, 0, number)) for number in (1, 2)]
        assert offsets == [FIRST + 101, FIRST + 102]
        assert await read_all(partition) == [b"0", b"foreign", b"1", b"2"]
        assert partition.leader_epoch == epoch

    over(body)


def test_where_nothing_is_left_to_read_nothing_counts_as_readable() -> None:
    """Else a consumer that stands there would be answered at once, for ever."""

    async def body(scene: Scene) -> None:
        partition = scene.partition
        await send(partition, b"a")
        scene.clock.ms += 1
        await send(partition, b"b")
        assert partition.readable(FIRST + 1) > 0
        del scene.server.stream("t:0").entries[1]  # XDEL by hand
        assert (await partition.read(FIRST + 1, 100)).data == []
        assert partition.readable(FIRST + 1) == 0
        assert partition.readable(FIRST) > 0
        await send(partition, b"c")
        assert partition.readable(FIRST + 1) > 0

    over(body)


def test_an_estimate_of_what_is_readable_goes_by_the_share_of_the_offsets() -> None:
    async def body(scene: Scene) -> None:
        partition = scene.partition
        for _ in range(300):
            put_values(partition, b"x" * 100)
            scene.clock.ms += 1
        await send(partition, b"x" * 100)
        size = partition.size
        assert partition.readable(0) == size
        half = partition.readable(FIRST + (150 << 10))
        assert 0.45 * size < half < 0.55 * size
        assert partition.readable(partition.end - 1) == size // 301

    over(body)


def test_a_read_batch_has_its_offset() -> None:
    async def body(scene: Scene) -> None:
        await send(scene.partition, b"a")
        page = await scene.partition.read(0, 100)
        assert first_record(page.data[0]) == FIRST
        assert await scene.partition.find_time(NOW) == (FIRST, NOW)

    over(body)
