"""A page that a follower has fetched is appended in parts, between which others have their turns of the loop."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from korvet_fast.core import fair_queue
from korvet_fast.core.replication import copying
from korvet_fast.core.replication.quorum_progress import QuorumProgress
from korvet_fast.core.replication.replica import Replica
from korvet_fast.errors import StoreError
from korvet_fast.store.embedded.store import EmbeddedStore
from korvet_fast.store.interface import OpenedLog
from korvet_fast.store.types import Appending, RecordBatch
from store.record_batches import make_record_batch

PAGE = 200  # batches, of one record each
PART = 64


def make_page(first: int, end: int = PAGE) -> bytes:
    """The batches from offset `first` up to `end`, of leader epoch 0."""
    page = bytearray()
    for offset in range(first, end):
        data = bytearray(make_record_batch(offset, 1).data)
        data[12:16] = bytes(4)
        page += data
    return bytes(page)


@pytest.fixture(autouse=True)
def each_part_takes_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a slow processor."""
    monkeypatch.setattr(fair_queue, "SLICE", -1.0)


@asynccontextmanager
async def open_copy(place: Path) -> AsyncIterator[Replica]:
    """A follower's copy, which has nothing yet."""
    store = EmbeddedStore(place)
    await store.open()
    try:
        replica = Replica("orders:0", "topic", store)
        await replica.open()
        replica.state.follow_leader(1, 0)
        yield replica
    finally:
        await store.close()


async def read_offsets(replica: Replica) -> int:
    """The end of what can be read, all of it from 0 on."""
    return (await replica.opened.read(0, 1 << 20, replica.end)).next


async def test_others_have_turns_between_parts(tmp_path: Path) -> None:
    async with open_copy(tmp_path) as replica:
        ends: list[int] = []

        async def look_on() -> None:
            while replica.end < PAGE:
                ends.append(replica.end)
                await asyncio.sleep(0)

        others = asyncio.create_task(look_on())
        assert await copying.copy(replica, 0, 0, make_page(0))
        await others
        assert {PART, 2 * PART, 3 * PART} <= set(ends)
        assert replica.end == replica.state.end == await read_offsets(replica) == PAGE


async def test_another_leadership_ends_the_copying_between_two_parts(tmp_path: Path) -> None:
    async with open_copy(tmp_path) as replica:

        async def move() -> None:
            while replica.end < PART:
                await asyncio.sleep(0)
            replica.state.follow_leader(2, 1)

        moving = asyncio.create_task(move())
        assert not await copying.copy(replica, 0, 0, make_page(0))
        await moving
        # What is there is on the disk, and the new leader is asked how much of it stays.
        assert PART <= replica.end < PAGE
        assert replica.end == replica.state.end == await read_offsets(replica)
        assert replica.state.asking == 0


async def test_what_went_well_before_a_failure_counts(tmp_path: Path) -> None:
    async with open_copy(tmp_path) as replica:
        opened, calls = replica.opened, 0

        def append(batches: Sequence[RecordBatch], *more: Any) -> Appending:
            nonlocal calls
            calls += 1
            if calls == 2:
                raise StoreError("no space left")
            return opened.append(batches, *more)

        replica.opened = OpenedLog(append, opened.read)
        with pytest.raises(StoreError, match="no space left"):
            await copying.copy(replica, 0, 0, make_page(0))
        assert replica.end == replica.state.end == await read_offsets(replica) == PART
        assert await copying.copy(replica, 0, PART, make_page(PART))
        assert replica.end == replica.state.end == await read_offsets(replica) == PAGE


async def test_who_led_without_a_record_goes_on_with_those_of_an_earlier_epoch(tmp_path: Path) -> None:
    """The next leader has more of the epoch before; a later start finds the epochs of the records that are there."""
    async with open_copy(tmp_path) as replica:
        assert await copying.copy(replica, 0, 0, make_page(0, PART))
        await replica.begin_leading(1, lambda end, safe: QuorumProgress(2, 1, (1, 2), end, safe))
        replica.stop_leading()
        assert replica.state.follow_leader(1, 2)
        assert replica.state.asking == 1
        await copying.settle_divergence(replica, 2, 1, (0, PAGE))
        assert await copying.copy(replica, 2, PART, make_page(PART))
        assert await read_offsets(replica) == PAGE
    async with open_copy(tmp_path) as replica:
        assert replica.epochs.entries == [(0, 0)]
