"""Partitions that nobody uses: their numbers stay what they are, in few objects that were made since."""

import pytest

from core_world import SharedWorld, read_all, send
from korvet_fast.core.partition.idle import settle_idle
from korvet_fast.core.partition.partition import Partition
from leader_scene import DENSE, deliver, hold, outcome, over

LAYOUTS = [DENSE, {"storage_layout": "entries"}]


def numbers(partition: Partition) -> list[int]:
    """Everything of a partition that is a number, and that an append may change."""
    log, high_watermark = partition.log, partition.high_watermark
    found = [log.start, log.end, log.size, log.removed, log.inherited_end, log.last_record_end]
    return [*found, log.gap_start, log.gap_end, high_watermark.offset, high_watermark.stored, partition.saver.unsaved]


def objects(partition: Partition) -> set[int]:
    """Those of these numbers that are objects of their own: Python has the smallest once for all."""
    return {id(number) for number in numbers(partition) if number > 256}


@pytest.mark.parametrize("configs", LAYOUTS)
def test_numbers_stay_and_are_other_objects(configs: dict[str, str]) -> None:
    async def body(world: SharedWorld) -> None:
        partition = world.partition
        first = await send(partition, b"a" * 1000)
        while partition.log.end < 300 + first:
            await send(partition, b"b" * 50, *[b"c"] * 50)
        await partition.delete_records(first + 280)
        await partition.read(partition.log.end - 1, 1)
        before, kept = numbers(partition), [*numbers(partition)]
        old = objects(partition)
        await settle_idle([partition])  # the first call finds out that nobody appended since
        assert numbers(partition) == before
        await settle_idle([partition])
        assert numbers(partition) == before == kept
        assert not objects(partition) & old
        assert len(objects(partition)) == len({number for number in before if number > 256})
        await send(partition, b"d")
        assert (await read_all(partition, partition.log.removed))[-1] == b"d"

    over(body, **configs)


@pytest.mark.parametrize("configs", LAYOUTS)
def test_what_is_in_use_is_left_alone(configs: dict[str, str]) -> None:
    async def body(world: SharedWorld) -> None:
        partition, high_watermark = world.partition, world.partition.high_watermark
        offsets = [await send(partition, b"x" * 100) for _ in range(3)]
        await settle_idle([partition])
        assert high_watermark.count_available_bytes(offsets[1])  # it was used
        offsets.append(await send(partition, b"x" * 100))
        await settle_idle([partition])
        assert high_watermark.count_available_bytes(offsets[1])
        held = hold(world, b"on its way")
        for _ in range(3):
            await settle_idle([partition])
        assert high_watermark.count_available_bytes(offsets[1])
        await deliver(world)
        assert [await outcome(partition, one) for one in held] == [held[0].base_offset]
        assert high_watermark.offset == partition.log.end
        for _ in range(2):
            await settle_idle([partition])
        assert high_watermark.count_available_bytes(offsets[1]) is None
        assert partition.log.available_bytes(offsets[1]) > 1  # by the average from now on
        await send(partition, b"x" * 100)
        assert high_watermark.count_available_bytes(partition.log.end - 1)

    over(body, **configs)


def test_bounds_are_read_again_after_it() -> None:
    async def body(world: SharedWorld) -> None:
        partition = world.partition
        await send(partition, b"a")
        world.later()
        await partition.log.refresh_bounds()
        read_at = partition.log.refreshed_at
        for _ in range(2):
            await settle_idle([partition])
        assert partition.log.refreshed_at == read_at  # still good enough
        world.later()
        await settle_idle([partition])
        assert partition.log.refreshed_at == 0.0
        await partition.log.refresh_bounds()
        assert partition.log.refreshed_at > read_at

    over(body, storage_layout="entries")


def test_the_broker_settles_all_partitions() -> None:
    async def body(world: SharedWorld) -> None:
        partition = world.partition
        for _ in range(2):
            await send(partition, *[b"x"] * 300)
        old, kept = objects(partition), numbers(partition)  # while these are kept, no other object is where they are
        for _ in range(2):
            await world.broker._close_idle()
        assert numbers(partition) == kept
        assert not objects(partition) & old

    over(body)
