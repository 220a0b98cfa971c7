"""Offsets that follow the clock, and records that other programs wrote."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from batches import NOW, make_batch
from core_world import SharedWorld as Scene
from core_world import put, put_values, read_all, run_shared, send, settle
from korvet_fast.core.fetch.delayed_fetch import DelayedFetch
from korvet_fast.errors import KorvetError, StoreError
from korvet_fast.store.types import Bounds, OffsetConflict
from korvet_fast.types import LATEST
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
        assert (partition.log.start, partition.log.end) == (0, 0)
        assert await send(partition, b"a", b"b") == FIRST
        assert (partition.log.start, partition.log.end, partition.high_watermark.offset) == (
            FIRST,
            FIRST + 2,
            FIRST + 2,
        )
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
        assert scene.store.log_formats["t:0"] == (10, False, 0)

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
        assert scene.store.log_formats["t:0"] == (10, True, 4)
        assert scene.partition.config.compression is None
        topic = scene.broker.topics.get("t")
        assert topic is not None
        await scene.broker.topics.alter(topic, {"compression.type": "gzip"})
        assert scene.store.log_formats["t:0"] == (10, True, 1)

    over(body, compression_type="zstd")


def test_another_programs_records_are_seen_after_a_look() -> None:
    async def body(scene: Scene) -> None:
        partition = scene.partition
        await partition.log.refresh_bounds()
        first = scene.server.add("t:0", FIRST, b"foreign")
        await partition.log.refresh_bounds()
        assert partition.log.end == 0  # what is known is fresh enough
        scene.later()
        await partition.log.refresh_bounds()
        assert (partition.log.start, partition.log.end, partition.high_watermark.offset) == (
            first,
            first + 1,
            first + 1,
        )
        assert await read_all(partition) == [b"foreign"]
        assert await send(partition, b"ours") == first + 1
        scene.later()
        scene.server.stream("t:0").batches.clear()  # XTRIM by hand
        scene.server.stream("t:0").removed = first + 2
        await partition.log.refresh_bounds()
        assert (partition.log.start, partition.log.end) == (first + 2, first + 2)

    over(body)


@pytest.mark.parametrize("failure", [None, StoreError("the server is gone")])
def test_a_crowd_that_wants_to_know_the_end_asks_the_store_once(failure: StoreError | None) -> None:
    async def body(scene: Scene) -> None:
        log, bounds, asked = scene.partition.log, scene.store.bounds, []
        answered = asyncio.Event()

        async def answer_late(name: str) -> Bounds:
            asked.append(name)
            await answered.wait()
            if failure is not None:
                raise failure
            return await bounds(name)

        scene.store.bounds = answer_late  # type: ignore[method-assign]
        scene.server.add("t:0", FIRST, b"foreign")
        scene.later()
        crowd = [asyncio.ensure_future(log.refresh_bounds()) for _ in range(100)]
        await asyncio.sleep(0)
        answered.set()
        outcomes = await asyncio.gather(*crowd, return_exceptions=True)
        assert (asked, set(outcomes)) == (["t:0"], {failure})
        assert log.end == (0 if failure else FIRST + 1)
        scene.store.bounds = bounds  # type: ignore[method-assign]
        scene.later()
        await log.refresh_bounds()
        assert log.end == FIRST + 1

    over(body)


def test_others_are_told_when_who_asked_for_the_end_leaves() -> None:
    async def body(scene: Scene) -> None:
        log = scene.partition.log
        scene.store.bounds = lambda name: asyncio.Event().wait()  # type: ignore[assignment, method-assign, return-value]
        scene.later()
        first, second = (asyncio.ensure_future(log.refresh_bounds()) for _ in range(2))
        await asyncio.sleep(0)
        first.cancel()
        with pytest.raises(StoreError, match="its end was not found out"):
            await second

    over(body)


def test_the_store_is_not_asked_where_nobody_waits_any_more() -> None:
    async def body(scene: Scene) -> None:
        log, bounds, asked = scene.partition.log, scene.store.bounds, []

        async def answer(name: str) -> Bounds:
            asked.append(name)
            return await bounds(name)

        scene.store.bounds = answer  # type: ignore[method-assign]
        log.subscribe()
        scene.server.add("t:0", FIRST, b"foreign")
        for _ in range(5):
            await asyncio.sleep(0)
        assert asked == []
        scene.later()
        await log.refresh_bounds()
        assert (asked, log.end) == (["t:0"], FIRST + 1)

    over(body)


def test_a_long_poll_is_woken_by_another_program() -> None:
    async def body(scene: Scene) -> None:
        partition = scene.partition
        for _ in range(2):
            end = partition.log.end
            with DelayedFetch([(partition.log, end)], 1) as watch:
                waiting = asyncio.create_task(watch.wait(60))
                await asyncio.sleep(0)
                scene.server.add("t:0", FIRST, b"foreign")
                assert await waiting
            assert await read_all(partition, end) == [b"foreign"]
        await send(partition, b"ours")
        assert partition.log.available_bytes(partition.log.end) == 0

    over(body)


def test_a_long_poll_goes_on_where_the_store_cannot_say_what_there_is(caplog: pytest.LogCaptureFixture) -> None:
    async def body(scene: Scene) -> None:
        with DelayedFetch([(scene.partition.log, 0)], 1) as watch:
            waiting = asyncio.create_task(watch.wait(60))
            await asyncio.sleep(0)
            scene.server.down = True
            scene.server.add("t:0", FIRST, b"foreign")
            assert await waiting
        scene.server.down = False
        assert "cannot be seen: the server is down" in caplog.text

    over(body)


def test_batches_are_put_behind_another_programs_record_in_their_order() -> None:
    async def body(scene: Scene) -> None:
        partition, epoch = scene.partition, scene.partition.leadership.epoch
        await send(partition, b"0", producer=(7, 0, 0))
        foreign = scene.server.add("t:0", FIRST + 100, b"foreign")
        sent = [put(partition, make_batch([b"%d" % n], producer=(7, 0, n)), acks) for n, acks in ((1, -1), (2, 1))]
        again = put(partition, make_batch([b"2"], producer=(7, 0, 2)), -1)
        for one in sent:
            assert one.done is not None
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        sent.append(put(partition, make_batch([b"3"], producer=(7, 0, 3)), -1))  # while the others look for a place
        offsets = [await settle(one) for one in sent]
        assert offsets == sorted(offsets)
        assert offsets[0] > foreign
        assert await settle(again) == offsets[1]
        assert await read_all(partition) == [b"0", b"foreign", b"1", b"2", b"3"]
        assert await send(partition, b"3", producer=(7, 0, 3)) == offsets[2]
        assert await send(partition, b"4", producer=(7, 0, 4)) == offsets[2] + 1
        assert partition.leadership.epoch == epoch

    over(body)


def test_a_batch_finds_a_place_however_busy_the_others_are() -> None:
    async def body(scene: Scene) -> None:
        partition = scene.partition
        scene.server.add("t:0", FIRST, b"foreign")
        scene.store.held = []
        appended = put(partition, make_batch([b"ours"]), -1)
        places = []
        for busy in (True, True, True, True, True, False):
            while not scene.store.held:
                await asyncio.sleep(0)
            places.append(partition.log.end - 1)
            if busy:
                scene.server.add("t:0", partition.log.end, b"foreign")
            scene.store.held.pop()()
        assert await settle(appended) == places[-1]
        assert places[-1] - FIRST == 64 << 10  # further ahead of the clock each time

    over(body)


def test_a_batch_that_finds_no_place_is_refused_in_the_end() -> None:
    async def body(scene: Scene) -> None:
        partition = scene.partition
        scene.server.greedy = True
        appended = put(partition, make_batch([b"ours"]), -1)
        assert appended.done is not None
        with pytest.raises(OffsetConflict) as caught:
            await asyncio.shield(appended.done)
        assert partition.leader.explain(caught.value).error == "NOT_LEADER_OR_FOLLOWER"
        scene.server.greedy = False
        assert await send(partition, b"ours", acks=1) > FIRST
        assert (await read_all(partition))[-1] == b"ours"

    over(body)


def test_a_batch_that_is_still_on_its_way_when_its_broker_resigns_ends_as_it_ends() -> None:
    async def body(scene: Scene) -> None:
        partition = scene.partition
        scene.store.held = []
        scene.server.add("t:0", FIRST, b"foreign")
        refused, late = [put(partition, make_batch([value]), -1) for value in (b"1", b"2")]
        scene.store.held[0]()
        await asyncio.sleep(0)
        partition.leader.resign("another broker leads it from now on")
        assert refused.done is not None
        with pytest.raises(KorvetError, match="another broker leads it"):
            await asyncio.shield(refused.done)
        scene.store.held[1]()
        assert late.done is not None
        with pytest.raises(KorvetError, match="another broker leads it"):
            await asyncio.shield(late.done)

    over(body)


@pytest.mark.parametrize("way", ["fork", "down", "fenced", "deleted"])
def test_batches_that_look_for_a_place_end_with_their_log(way: str) -> None:
    async def body(scene: Scene) -> None:
        partition = scene.partition
        scene.server.add("t:0", FIRST, b"foreign")
        sent = [put(partition, make_batch([b"1"]), -1)]
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        sent.append(put(partition, make_batch([b"2"]), -1))
        if way == "fork":
            scene.server.change_history("the server was restarted")
        elif way == "down":
            scene.server.down = True
        elif way == "fenced":
            scene.server.stream("t:0").epoch += 1
        else:
            topic = scene.broker.topics.get("t")
            assert topic is not None
            await scene.broker.topics.delete(topic)
        told = set()
        for one in sent:
            assert one.done is not None
            await asyncio.wait([one.done])
            failure = one.done.exception()
            assert failure is not None
            told.add(partition.leader.explain(failure).error)
        expected = {"deleted": "UNKNOWN_TOPIC_OR_PARTITION", "down": "KAFKA_STORAGE_ERROR"}
        assert told == {expected.get(way, "NOT_LEADER_OR_FOLLOWER")}
        scene.server.down = False

    over(body)


def test_where_nothing_is_left_to_read_nothing_counts_as_readable() -> None:
    """Else a consumer that stands there would be answered at once, for ever."""

    async def body(scene: Scene) -> None:
        partition = scene.partition
        await send(partition, b"a")
        scene.clock.ms += 1
        await send(partition, b"b")
        assert partition.log.available_bytes(FIRST + 1) > 0
        del scene.server.stream("t:0").batches[1]  # XDEL by hand
        assert (await partition.read(FIRST + 1, 100)).data == []
        assert partition.log.available_bytes(FIRST + 1) == 0
        assert partition.log.available_bytes(FIRST) > 0
        await send(partition, b"c")
        assert partition.log.available_bytes(FIRST + 1) > 0

    over(body)


def test_an_estimate_of_what_is_readable_goes_by_the_share_of_the_offsets() -> None:
    async def body(scene: Scene) -> None:
        partition = scene.partition
        for _ in range(300):
            put_values(partition, b"x" * 100)
            scene.clock.ms += 1
        await send(partition, b"x" * 100)
        size = partition.log.size
        assert partition.log.available_bytes(0) == size
        half = partition.log.available_bytes(FIRST + (150 << 10))
        assert 0.45 * size < half < 0.55 * size
        assert partition.log.available_bytes(partition.log.end - 1) == size // 301

    over(body)


def test_a_read_batch_has_its_offset() -> None:
    async def body(scene: Scene) -> None:
        await send(scene.partition, b"a")
        page = await scene.partition.read(0, 100)
        assert first_record(page.data[0]) == FIRST
        assert await scene.partition.log.find_time(NOW) == (FIRST, NOW)

    over(body)
