"""Two programs that both think they own a log: only one of them can append, and the other leaves no trace."""

import asyncio

import pytest

from korvet_fast.errors import StoreError
from korvet_fast.store.interface import BATCHES, Detached, Form, Stale
from store.redis_log.place import LOG, Place, log_of
from store.scene import Scene


async def test_not_attached(place: Place) -> None:
    async with place.scene() as scene:
        with pytest.raises(Detached):
            scene.append(LOG, 0, 1)
        scene.store.declare(LOG, place.form)
        with pytest.raises(Detached):
            scene.append(LOG, 0, 1)


@pytest.mark.parametrize("written", [0, 3])
async def test_former_owner(place: Place, written: int) -> None:
    """What it appends is refused, all that it had sent before, too, and nothing changes."""
    async with place.scene() as former, place.scene() as owner:
        assert (await former.attach(LOG, epoch=4)).epoch == 4
        if written:
            await former.fill(LOG, written)
        assert (await owner.attach(LOG, epoch=4)).epoch == 5
        before = place.snapshot()
        appendings = [former.append(LOG, written + number, 1) for number in range(200)]
        for appending in appendings:
            for future in appending:
                with pytest.raises(Stale) as refused:
                    await future
                assert refused.value.fenced
        assert place.snapshot() == before
        with pytest.raises(Detached):
            former.append(LOG, written, 1)
        assert (await owner.fill(LOG, 2)).end == written + 2
        assert await owner.read_all(LOG) == list(range(written + 2))


async def test_former_owner_with_higher_offsets(place: Place) -> None:
    """Its ids lie above all that is there, so Redis itself would take them."""
    async with place.scene() as former, place.scene() as owner:
        await former.attach(LOG)
        await former.fill(LOG, 3)
        log = log_of(former)
        await owner.attach(LOG)
        before = place.snapshot()
        log.end += 5000
        with pytest.raises(Stale):
            await former.append(LOG, 5003, 2).stored
        assert place.snapshot() == before


async def test_same_program_takes_it_again(place: Place) -> None:
    async with place.scene() as scene:
        first = await scene.attach(LOG)
        await scene.fill(LOG, 2)
        again = await scene.attach(LOG, floor=7)
        assert again.epoch == first.epoch + 1
        assert (again.bounds.end, again.top) == (7, 2)
        assert (await scene.fill(LOG, 1)).end == 8
        assert await scene.read_all(LOG) == [0, 1, 7]
        assert (await scene.attach(LOG, floor=3)).top == 8


async def test_attach_waits_for_what_is_under_way(place: Place) -> None:
    async with place.scene() as scene:
        await scene.attach(LOG)
        futures = [scene.append(LOG, number, 1).stored for number in range(20)]
        assert (await scene.attach(LOG)).bounds.end == 20
        assert all(future.done() and future.exception() is None for future in futures)


async def test_gap(place: Place) -> None:
    """Where records were lost, the log goes on above them, and readers go over the hole."""
    async with place.scene() as scene:
        await scene.attach(LOG)
        await scene.fill(LOG, 3)
        attached = await scene.attach(LOG, floor=2000)
        assert (attached.bounds.end, attached.bounds.start, attached.top) == (2000, 0, 3)
        assert await scene.read_offsets(LOG, 1000, 100) == []
        assert (await scene.attach(LOG)).top == 3
        await scene.append(LOG, 2000, 2).durable
        assert await scene.read_all(LOG) == [0, 1, 2, 2000, 2001]
        assert (await scene.read_offsets(LOG, 1000, 1))[0] == 2000
        assert await scene.find_time(LOG, 1) != []
        assert (await scene.attach(LOG)).top == 2002


async def test_two_owners_in_turn(place: Place) -> None:
    """Each takes the log over whenever it is refused; no offset is acknowledged twice, none of those is missing."""
    async with place.scene() as one, place.scene() as other:
        acked: dict[int, str] = {}
        taken = 0

        async def write(name: str, scene: Scene) -> None:
            nonlocal taken
            end = -1
            while len(acked) < 300:
                try:
                    if end < 0:
                        end = (await scene.attach(LOG)).bounds.end
                        taken += 1
                    for number, appending in enumerate([scene.append(LOG, end + number, 1) for number in range(3)]):
                        await appending.stored
                        assert end + number not in acked
                        acked[end + number] = name
                    end += 3
                except (Stale, StoreError):
                    end = -1

        await asyncio.gather(write("one", one), write("other", other))
        assert taken > 2
        assert set(acked) <= set(await one.read_all(LOG))


async def test_dropped_by_another(place: Place) -> None:
    async with place.scene() as former, place.scene() as other:
        await former.attach(LOG)
        await former.fill(LOG, 2)
        await other.drop(LOG)
        with pytest.raises(Stale) as refused:
            await former.append(LOG, 2, 1).stored
        assert refused.value.fenced
        assert place.snapshot() == ([],)
        # A log of the same name has nothing to do with the one before.
        await other.attach(LOG)
        assert (await other.fill(LOG, 1)).end == 1


async def test_layout_is_fixed(place: Place) -> None:
    async with place.scene() as scene:
        await scene.attach(LOG)
        other = Form(9, place.form.single)
        with pytest.raises(StoreError, match=f"laid out as {'entries' if place.form.single else BATCHES}:10, not"):
            await scene.store.attach(LOG, other, epoch=0, floor=0)
        with pytest.raises(Detached):
            scene.append(LOG, 0, 1)
        assert (await scene.attach(LOG)).bounds.end == 0
