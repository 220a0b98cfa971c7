"""The state of a partition after a clean stop, after a crash, and after its store failed."""

import asyncio
import struct
from pathlib import Path

import pytest

from batches import make_batch
from core_world import World, copy_as_crashed, put, put_values, read_all, run_broker, settle
from korvet_fast.core.partition.partition import Partition
from korvet_fast.core.partition.snapshot import PartitionSnapshot
from korvet_fast.errors import KorvetError, StoreError, TooFewCopies
from korvet_fast.store.types import OffsetConflict


def find(world: World) -> Partition:
    return world.broker.partition("t", 0)


async def create(world: World, durability: str = "fsync") -> Partition:
    return (await world.broker.topics.create("t", 1, {"durability": durability})).partitions[0]


async def send(partition: Partition, sequence: int) -> int | str:
    """One record of producer 7 with acks=all: the offset answered, or the error."""
    try:
        return await settle(put(partition, make_batch([b"%d" % sequence], producer=(7, 0, sequence)), acks=-1))
    except KorvetError as error:
        return error.error


def test_idempotence_survives_a_clean_stop_without_reading_the_log(tmp_path: Path) -> None:
    async def run() -> None:
        async with run_broker(tmp_path) as world:
            partition = await create(world)
            assert [await send(partition, number) for number in range(10)] == list(range(10))
        async with run_broker(tmp_path) as world:
            assert world.store.reads == 0
            assert [await send(find(world), number) for number in (8, 9, 10, 4, 12)] == [
                8,
                9,
                10,
                "DUPLICATE_SEQUENCE_NUMBER",
                "OUT_OF_ORDER_SEQUENCE_NUMBER",
            ]

    asyncio.run(run())


@pytest.mark.parametrize("save_at", [None, 0, 5, 10])
def test_idempotence_survives_a_death(tmp_path: Path, save_at: int | None) -> None:
    async def run() -> None:
        async with run_broker(tmp_path / "data") as world:
            partition = await create(world)
            for number in range(10):
                if number == save_at:
                    await partition.saver.save()
                await send(partition, number)
            if save_at == 10:
                await partition.saver.save()
            copy_as_crashed(tmp_path / "data", tmp_path / "image")
        async with run_broker(tmp_path / "image") as world:
            assert (world.store.reads == 0) == (save_at == 10)
            assert find(world).leadership.epoch == 1
            assert [await send(find(world), number) for number in (9, 5, 4, 10)] == [
                9,
                5,
                "DUPLICATE_SEQUENCE_NUMBER",
                10,
            ]
            assert await read_all(find(world)) == [b"%d" % number for number in range(11)]

    asyncio.run(run())


def test_the_state_is_saved_by_itself_after_enough_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("korvet_fast.core.partition.partition.SAVE_EVERY", 1000)

    async def run() -> None:
        async with run_broker(tmp_path) as world:
            partition = await create(world)
            await send(partition, 0)
            assert await world.store.load(PartitionSnapshot("t:0").key) is None
            await settle(put(partition, make_batch([b"x" * 1000]), acks=-1))
            while await world.store.load(PartitionSnapshot("t:0").key) is None:
                await asyncio.sleep(0)

    asyncio.run(run())


def test_a_saved_state_that_is_ahead_of_the_log_is_not_believed(tmp_path: Path) -> None:
    async def run() -> None:
        async with run_broker(tmp_path) as world:
            partition = await create(world)
            for number in range(10):
                await send(partition, number)
        # A power failure took the log's end, which a topic with durability=written may lose.
        async with run_broker(tmp_path) as world:
            await world.store.truncate("t:0", 6)
        async with run_broker(tmp_path) as world:
            assert find(world).log.end == 6
            assert [await send(find(world), number) for number in (5, 6, 7)] == [5, 6, 7]
        async with run_broker(tmp_path) as world:
            assert [await send(find(world), number) for number in (7, 8)] == [7, 8]
            assert await read_all(find(world)) == [b"%d" % number for number in range(9)]

    asyncio.run(run())


def test_leader_epochs_count_deaths_and_end_where_the_next_begins(tmp_path: Path) -> None:
    async def run() -> None:
        data = tmp_path / "0"
        for life in range(3):
            async with run_broker(data) as world:
                partition = await create(world) if life == 0 else find(world)
                assert partition.leadership.epoch == life
                assert partition.find_epoch_end(life) == (life, partition.log.end)
                put_values(partition, b"a")
                await settle(put(partition, make_batch([b"b"]), acks=-1))
                data = copy_as_crashed(data, tmp_path / f"{life + 1}")
        async with run_broker(data) as world:
            assert [find(world).find_epoch_end(epoch) for epoch in range(5)] == [
                (0, 2),
                (1, 4),
                (2, 6),
                (3, 6),
                (-1, -1),
            ]
            assert [find(world).find_epoch(offset) for offset in range(7)] == [0, 0, 1, 1, 2, 2, 3]
        async with run_broker(data) as world:
            assert find(world).leadership.epoch == 3

    asyncio.run(run())


@pytest.mark.parametrize("failure", [StoreError("no space left"), OffsetConflict(99)])
def test_an_append_that_fails_leaves_nothing_and_the_next_one_works(tmp_path: Path, failure: Exception) -> None:
    async def run() -> None:
        async with run_broker(tmp_path) as world:
            partition = await create(world)
            await send(partition, 0)
            world.store.refuse = failure
            assert await send(partition, 1) == "KAFKA_STORAGE_ERROR"
            world.store.refuse = None
            answers = [await send(partition, 1)]
            while answers[-1] == "KAFKA_STORAGE_ERROR":
                await asyncio.sleep(0)
                answers.append(await send(partition, 1))
            assert answers[-1] == 1
            assert await read_all(partition) == [b"0", b"1"]

    asyncio.run(run())


@pytest.mark.parametrize("kept", [True, False])
def test_appends_that_fail_late_are_not_acknowledged_and_memory_follows_the_log(tmp_path: Path, kept: bool) -> None:
    """Three appends in a row are under way when the first one's flush fails; the log kept them, or it did not."""

    async def run() -> None:
        async with run_broker(tmp_path) as world:
            partition = await create(world)
            await send(partition, 0)
            held = world.store.hold = []
            sent = [asyncio.create_task(send(partition, number)) for number in (1, 2, 3)]
            await asyncio.sleep(0)
            if not kept:
                await world.store.truncate("t:0", 1)
            world.store.hold = None
            for future in held:
                future.set_exception(StoreError("flush failed"))
            assert await asyncio.gather(*sent) == ["KAFKA_STORAGE_ERROR"] * 3
            while (answer := await send(partition, 1)) == "KAFKA_STORAGE_ERROR":
                await asyncio.sleep(0)
            assert answer == 1
            assert partition.log.end == (4 if kept else 2)
            assert [await send(partition, number) for number in (2, 3, 4)] == [2, 3, 4]
            assert await read_all(partition) == [b"0", b"1", b"2", b"3", b"4"]

    asyncio.run(run())


@pytest.mark.parametrize("place", ["stored", "durable"])
def test_an_append_that_has_failed_when_it_returns_is_not_acknowledged(tmp_path: Path, place: str) -> None:
    async def run() -> None:
        async with run_broker(tmp_path) as world:
            partition = await create(world)
            await send(partition, 0)
            world.store.fail = place
            assert await send(partition, 1) == "KAFKA_STORAGE_ERROR"
            assert partition.high_watermark.offset == 1
            world.store.fail = ""
            while (answer := await send(partition, 1)) == "KAFKA_STORAGE_ERROR":
                await asyncio.sleep(0)
            assert answer == 1
            assert await read_all(partition) == [b"0", b"1"]

    asyncio.run(run())


@pytest.mark.parametrize(
    ("failure", "answered", "refused"),
    [
        (StoreError("flush failed"), "KAFKA_STORAGE_ERROR", "KAFKA_STORAGE_ERROR"),
        (TooFewCopies("no replica"), "NOT_ENOUGH_REPLICAS_AFTER_APPEND", "NOT_ENOUGH_REPLICAS"),
    ],
)
def test_a_log_that_cannot_be_made_durable_takes_nothing_and_shows_nothing(
    tmp_path: Path, failure: StoreError, answered: str, refused: str
) -> None:
    async def run() -> None:
        async with run_broker(tmp_path) as world:
            partition = await create(world)
            await send(partition, 0)
            held = world.store.hold = []
            world.store.durable = 1
            sent = asyncio.create_task(send(partition, 1))
            for _ in range(20):
                await asyncio.sleep(0)
                for future in held:
                    if not future.done():
                        future.set_exception(failure)
                await asyncio.sleep(0)
                with pytest.raises(KorvetError, match=f"^{refused}:"):
                    put(partition, make_batch([b"2"], producer=(7, 0, 2)), acks=-1)
            assert await sent == answered
            assert partition.high_watermark.offset == 1
            assert await read_all(partition) == [b"0"]
            world.store.hold = None
            for future in held:
                if not future.done():
                    future.set_exception(failure)
            while (answer := await send(partition, 1)) in (answered, refused):
                await asyncio.sleep(0)
            assert answer == 1
            assert await read_all(partition) == [b"0", b"1"]

    asyncio.run(run())


def test_a_state_changed_by_another_writer_is_reported(tmp_path: Path) -> None:
    async def run() -> None:
        async with run_broker(tmp_path) as world:
            partition = await create(world)
            await send(partition, 0)
            key = PartitionSnapshot("t:0").key
            assert await world.store.save(key, b"other", None)
            with pytest.raises(StoreError, match="another writer"):
                await partition.saver.save()
            assert await world.store.save(key, None, b"other")

    asyncio.run(run())


def test_appends_that_fail_one_after_the_other_are_told_once_in_a_while(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def run() -> None:
        async with run_broker(tmp_path) as world:
            partition = await create(world)
            for seconds, told in [(0, 1), (4, 1), (4, 1), (4, 2), (4, 2), (100, 3)]:
                world.clock.seconds += seconds
                for _ in range(5):
                    world.store.refuse = StoreError("no room")
                    assert await send(partition, 0) == "KAFKA_STORAGE_ERROR"
                    world.store.refuse = None
                    await (
                        partition.leader.recover()
                    )  # the store says where the log ends: all is well, until the next append
                assert caplog.text.count("t:0: no room") == told
            world.store.refuse = StoreError("something else")
            assert await send(partition, 0) == "KAFKA_STORAGE_ERROR"
            assert "t:0: something else" in caplog.text
            world.store.refuse = None

    asyncio.run(run())


@pytest.mark.parametrize(
    "reason",
    [
        "/data/{name}: no room",
        "{name}: no room: MOVED {number} 127.0.0.1:{number}",
        "{name}: no room for records from offset {number} on",
    ],
)
def test_a_reason_that_many_partitions_have_is_told_once_in_a_while(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, reason: str
) -> None:
    async def run() -> None:
        async with run_broker(tmp_path) as world:
            partitions = (await world.broker.topics.create("t", 30, {"durability": "fsync"})).partitions
            for seconds, told in [(0, 1), (9, 1), (2, 2)]:
                world.clock.seconds += seconds
                for partition in partitions:
                    world.store.refuse = StoreError(reason.format(name=partition.name, number=partition.index))
                    assert await send(partition, 0) == "KAFKA_STORAGE_ERROR"
                    world.store.refuse = None
                    await partition.leader.recover()
                assert caplog.text.count("no room") == told
            assert reason.format(name="t:0", number=0) in caplog.text
            assert "more like it since the last line" in caplog.text

    asyncio.run(run())


def test_earlier_versions_read_the_log_anew_where_they_cannot_read_the_saved_state() -> None:
    state = PartitionSnapshot("t:0")
    state.producers.add((7, 1, 0, 2), 0, 0, 0.0)
    assert struct.unpack_from("<i", state.pack(2)) == (1,)
    state.producers.forget(0)  # now only what follows is known, and those versions have no word for that
    packed = state.pack(0)
    assert struct.unpack_from("<i", packed) == (2,)
    again = PartitionSnapshot("t:0")
    again.load(packed, 0.0)
    assert again.pack(0) == packed
