"""Records with too few copies (`min.insync.replicas`): not shown, and no reason to acquire the log again."""

import asyncio

import pytest

from batches import make_batch
from core_world import AppendResult, SharedWorld, put, read_all, run_shared, send, settle
from korvet_fast.core.partition.partition import Partition
from korvet_fast.core.produce.acks import find_outcome
from korvet_fast.errors import KorvetError
from leader_scene import DENSE, deliver, hold, outcome, over
from shared_store import Server


def test_acks_all_asks_the_store_whether_it_can_keep_the_promise() -> None:
    async def body(world: SharedWorld) -> None:
        world.store.refuses = "appendfsync is everysec: set it to always"
        with pytest.raises(KorvetError, match="NOT_ENOUGH_REPLICAS: appendfsync is everysec"):
            await send(world.partition, b"a")
        assert await settle(put(world.partition, make_batch(), 1)) == 0
        world.store.refuses = None
        assert await send(world.partition, b"a") == 1

    over(body, durability="fsync", **DENSE)


def lack(world: SharedWorld, lacking: bool) -> None:
    """Whether replicas are lacking that the topic asks for, and the store knows it."""
    world.store.lacking = lacking
    world.store.refuses = "there are no replicas now" if lacking else None


async def poll(world: SharedWorld) -> None:
    """The broker's work of every second, some times."""
    for _ in range(3):
        await world.broker._retry_failed()


@pytest.mark.parametrize("configs", [DENSE, {"storage_layout": "entries"}])
@pytest.mark.parametrize("acks", [1, -1])
def test_what_has_too_few_copies_is_not_shown_and_no_reason_to_take_the_log_over(
    configs: dict[str, str], acks: int, caplog: pytest.LogCaptureFixture
) -> None:
    async def body(world: SharedWorld) -> None:
        partition = world.partition
        first = await send(partition, b"a")
        epoch = partition.leadership.epoch
        lack(world, True)
        if acks == -1:
            world.store.refuses = None  # the store has not seen it yet
        answered = await outcome(partition, put(partition, make_batch([b"b"]), acks))
        assert answered == ("NOT_ENOUGH_REPLICAS_AFTER_APPEND" if acks == -1 else first + 1)
        await poll(world)
        with pytest.raises(KorvetError, match="NOT_ENOUGH_REPLICAS: there are no replicas"):
            put(partition, make_batch(), -1)
        assert partition.high_watermark.offset == first + 1
        assert await read_all(partition, first) == [b"a"]
        lack(world, False)
        await poll(world)
        assert await read_all(partition, first) == [b"a", b"b"]
        await send(partition, b"c")
        assert partition.leadership.epoch == epoch

    over(body, min_insync_replicas="2", **configs)
    assert caplog.text.count("there are no replicas") < 4


@pytest.mark.parametrize("configs", [DENSE, {"storage_layout": "entries"}])
@pytest.mark.parametrize("known", [True, False])
def test_acks_1_asks_for_no_copies_and_goes_on_where_they_are_missing(configs: dict[str, str], known: bool) -> None:
    """By Kafka, min.insync.replicas is a matter of acks=all only. `known`: the store sees that replicas are missing."""

    async def body(world: SharedWorld) -> None:
        partition = world.partition
        first = await send(partition, b"a")
        epoch = partition.leadership.epoch
        lack(world, True)
        world.store.refuses = None
        failed = put(partition, make_batch([b"b"], producer=(7, 0, 0)), -1)
        assert await outcome(partition, failed) == "NOT_ENOUGH_REPLICAS_AFTER_APPEND"
        lack(world, True)
        world.store.refuses = world.store.refuses if known else None
        offsets = []
        for number in range(1, 6):
            again = make_batch([b"%d" % number], producer=(7, 0, number))
            offsets.append(await settle(put(partition, again, number % 2)))
            assert await settle(put(partition, make_batch([b"%d" % number], producer=(7, 0, number)), 1)) == offsets[-1]
            with pytest.raises(KorvetError, match="NOT_ENOUGH_REPLICAS:"):
                put(partition, make_batch([b"b"], producer=(7, 0, 0)), -1)
            await poll(world)
        assert offsets == sorted(set(offsets))
        assert partition.high_watermark.offset == first + 1
        held = hold(world, b"on its way", acks=1)
        lack(world, False)
        recovering = asyncio.create_task(poll(world))
        await asyncio.sleep(0)
        await deliver(world)
        assert [await outcome(partition, one) for one in held] == [held[0].base_offset]
        await recovering
        assert await read_all(partition, first) == [b"a", b"b", b"1", b"2", b"3", b"4", b"5", b"on its way"]
        assert await send(partition, b"c") == held[0].base_offset + 1
        assert partition.leadership.epoch == epoch

    over(body, min_insync_replicas="2", **configs)


def late(partition: Partition, appended: AppendResult) -> str:
    """The error of an append whose time is over now."""
    _, error, base, _, _ = find_outcome(partition.index, partition, appended, -1, 100)
    assert base == -1
    return str(error)


@pytest.mark.parametrize("lacking", [False, True])
def test_a_batch_that_is_refused_is_not_said_to_be_stored_when_its_time_is_over(lacking: bool) -> None:
    async def body(world: SharedWorld) -> None:
        partition = world.partition
        await send(partition, b"a", producer=(7, 0, 0))
        refused = put(partition, make_batch([b"c"], producer=(7, 0, 2)), -1)
        lack(world, lacking)
        said = "not stored, and not known within 100 ms whether this broker leads t:0"
        if lacking:
            assert late(partition, refused) == f"NOT_ENOUGH_REPLICAS: {said}: there are no replicas now"
        else:
            assert late(partition, refused) == f"REQUEST_TIMED_OUT: {said}"
        lack(world, False)
        assert await outcome(partition, refused) == "OUT_OF_ORDER_SEQUENCE_NUMBER"
        assert await read_all(partition) == [b"a"]

    over(body, min_insync_replicas="2", **DENSE)


def test_an_append_that_is_on_its_way_when_its_time_is_over_is_not_said_to_be_stored() -> None:
    async def body(world: SharedWorld) -> None:
        partition = world.partition
        (held,) = hold(world, b"a")
        assert late(partition, held) == "REQUEST_TIMED_OUT: not known within 100 ms to be stored"
        partition.high_watermark.stored = partition.log.end
        assert late(partition, held) == "REQUEST_TIMED_OUT: stored, but not as acks asks for within 100 ms"
        lack(world, True)
        said = "stored, but not as acks asks for within 100 ms: there are no replicas now"
        assert late(partition, held) == f"NOT_ENOUGH_REPLICAS_AFTER_APPEND: {said}"
        lack(world, False)
        await deliver(world)
        assert await outcome(partition, held) == 0

    over(body, min_insync_replicas="2", **DENSE)


def test_a_new_history_without_replicas_is_taken_over_once_and_shown_when_they_are_back() -> None:
    async def body(world: SharedWorld) -> None:
        partition, epoch = world.partition, world.partition.leadership.epoch
        await send(partition, b"a")
        hold(world, b"b")
        world.store.lacking = True
        await deliver(world)
        assert (partition.high_watermark.offset, partition.log.end) == (1, 2)
        lack(world, True)
        world.server.stream("t:0").durable = 1
        world.server.change_history("a replica took over")
        await poll(world)
        new = partition.leadership.epoch
        assert new > epoch
        await poll(world)
        assert partition.leadership.epoch == new
        assert (partition.high_watermark.offset, partition.log.end) == (1, 2)
        assert partition.find_epoch_end(epoch) == (epoch, 2)
        with pytest.raises(KorvetError, match="NOT_ENOUGH_REPLICAS: there are no replicas"):
            put(partition, make_batch(), -1)
        lack(world, False)
        await poll(world)
        assert await read_all(partition) == [b"a", b"b"]
        assert await send(partition, b"c") == 2
        assert partition.leadership.epoch == new

    over(body, min_insync_replicas="2", **DENSE)


def test_who_takes_over_what_has_too_few_copies_shows_it_when_it_has_enough() -> None:
    async def run() -> None:
        server = Server()
        async with run_shared(server) as old:
            await old.create(min_insync_replicas="2", **DENSE)
            await send(old.partition, b"a")
            async with run_shared(server) as new:
                partition = new.partition
                partition.leader.resign("it takes it over once more")
                partition.high_watermark.reset(0)
                server.stream("t:0").durable = 0
                lack(new, True)
                await partition.leader.become_leader()
                await poll(new)
                assert (partition.high_watermark.offset, partition.log.end) == (0, 1)
                lack(new, False)
                await poll(new)
                assert await read_all(partition) == [b"a"]

    asyncio.run(run())
