"""Logs that nobody uses are packed: one block of bytes each. Whoever uses one finds what was there."""

import subprocess
import sys
from collections.abc import Callable
from operator import attrgetter
from typing import Any

import pytest

from batches import make_batch
from korvet_fast._native import batch_headers
from korvet_fast.errors import StoreError
from korvet_fast.store.redis.connection.calls import IdempotentCalls
from korvet_fast.store.redis.log.log import Log
from korvet_fast.store.redis.log.packed_log import unpack_log
from korvet_fast.store.redis.store import RedisStore
from korvet_fast.store.redis.stream.state import read_state
from korvet_fast.store.types import LogFormat, NotLeader, OffsetConflict, RecordBatch
from redis_server import PROGRAMS, RedisServer
from store.engines import RedisEngine
from store.redis_log.redis_namespace import LOG, RedisNamespace
from store.scene import Scene

_SMALL = 512  # bytes of the largest blocks that Python takes among its small objects
_PACKED = (
    *("end", "end_field", "reach", "durable", "totals", "average", "density", "densest", "first", "foreign"),
    *("lost_below", "fencing_token", "epochs", "segments._sure"),
)


def find(scene: Scene) -> Log:
    assert isinstance(scene.store, RedisStore)
    return scene.store._logs[LOG]


async def pack(scene: Scene) -> Log:
    """The first call finds out which logs nobody uses, the second one packs them."""
    await scene.store.close_idle()
    await scene.store.close_idle()
    log = find(scene)
    assert log.packed
    return log


def rows(log: Log) -> bytes:
    return log.segments.pack()


def known(log: Log) -> dict[str, Any]:
    return {name: attrgetter(name)(log) for name in _PACKED} | {"headers": list(log.headers.items()), "rows": rows(log)}


async def test_everything_is_as_before(place: RedisNamespace) -> None:
    async with place.scene() as scene:
        await scene.fill(LOG, 3, 3, time=1000)
        await scene.read_all(LOG)
        await scene.fill(LOG, 2, size=70_000, time=2000)  # another segment than that which was the last one to be read
        log = find(scene)
        log.reach = 77
        before = known(log)
        assert len(log.segments.rows) > 1
        await pack(scene)
        assert not log.fencing_token
        assert sys.getsizeof(log.packed) > _SMALL
        with pytest.raises(OffsetConflict):
            scene.append(LOG, 0, 1)
        assert known(log) == before


async def test_a_log_that_is_used_between_two_calls_is_not_packed(place: RedisNamespace) -> None:
    async with place.scene() as scene:
        await scene.fill(LOG, 3)
        for use in (scene.fill(LOG, 1), scene.read(LOG, 0, 1), scene.read(LOG, 3, 1 << 20)):
            await scene.store.close_idle()
            await use
            await scene.store.close_idle()
            assert not find(scene).packed
        await pack(scene)


async def test_nothing_is_packed_that_is_under_way(place: RedisNamespace) -> None:
    async with place.scene() as scene:
        await scene.fill(LOG, 3)
        log = find(scene)
        pending = scene.append(LOG, 3, 1)
        for _ in range(3):
            await scene.store.close_idle()
            if not pending.stored.done():
                assert not log.packed
        await pending.stored
        unpack_log(log)  # it may have been packed, if Redis had answered before the last call
        log.users = 1
        for _ in range(3):
            await scene.store.close_idle()
        assert not log.packed
        log.users = 0
        await pack(scene)


async def test_logs_without_records_stay_as_they_are(place: RedisNamespace) -> None:
    async with place.scene() as scene:
        await scene.acquire(LOG)
        for _ in range(3):
            await scene.store.close_idle()
        assert not find(scene).packed


def test_logs_without_entries_have_no_number_of_their_own_for_that() -> None:
    one, other = (read_state([None] * 15, LogFormat()).average for _ in range(2))
    assert one == 0
    assert one is other


async def test_who_looks_at_the_bounds_leaves_a_log_packed(place: RedisNamespace) -> None:
    async with place.scene() as scene:
        before = await scene.fill(LOG, 3, 3, time=1000)
        log = await pack(scene)
        assert await scene.bounds(LOG) == before
        assert await scene.apply_retention(LOG, older_than=1000) == before
        assert scene.store.shared is not None
        assert await scene.store.shared.is_leader(LOG)
        assert log.packed
        assert 4 in await scene.find_time(LOG, 1004)
        assert log.packed
        place.call("XTRIM", place.key, "MAXLEN", 0)
        bounds = await scene.bounds(LOG)
        assert (bounds.start, bounds.end, bounds.removed) == (6, 6, 6)
        assert (await scene.fill(LOG, 1)).end == 7
        assert not log.packed


async def test_what_others_did_to_a_packed_log_is_noticed(place: RedisNamespace) -> None:
    async with place.scene() as scene:
        await scene.fill(LOG, 10)
        await pack(scene)
        place.call("DEL", place.key)
        bounds = await scene.bounds(LOG)
        assert (bounds.start, bounds.end, bounds.lost) == (10, 10, 10)


async def test_records_are_read_and_deleted(place: RedisNamespace) -> None:
    async with place.scene() as scene:
        await scene.fill(LOG, 3, 3, 3)
        await pack(scene)
        assert await scene.read_all(LOG) == list(range(9))
        log = await pack(scene)
        assert (await scene.delete_records(LOG, 4)).start == 4
        assert log.packed
        assert (await scene.fill(LOG, 2)).end == 11
    async with place.scene() as scene:
        bounds = (await scene.acquire(LOG)).bounds
        assert (bounds.start, bounds.end) == (4, 11)


async def test_who_took_a_packed_log_over_refuses_its_former_leader(place: RedisNamespace) -> None:
    async with place.scene() as former, place.scene() as scene:
        await former.fill(LOG, 3)
        await pack(former)
        await scene.acquire(LOG, epoch=7)
        assert former.store.shared is not None
        assert not await former.store.shared.is_leader(LOG)
        appending = former.append(LOG, 3, 1)
        with pytest.raises(OffsetConflict) as refused:
            await appending.stored
        assert refused.value.fenced
        assert (await scene.fill(LOG, 1)).end == 4


async def test_a_packed_log_is_acquired_anew_and_dropped(place: RedisNamespace) -> None:
    async with place.scene() as scene:
        await scene.fill(LOG, 3)
        await pack(scene)
        assert (await scene.acquire(LOG, epoch=3)).bounds.end == 3
        assert (await scene.fill(LOG, 1)).end == 4
        log = await pack(scene)
        await scene.drop(LOG)
        assert not log.packed
        assert not place.call("EXISTS", place.key)
        assert (await scene.bounds(LOG)).end == 0


async def test_a_packed_log_is_given_up_when_the_history_breaks(place: RedisNamespace) -> None:
    async with place.scene() as scene:
        await scene.fill(LOG, 3)
        log = await pack(scene)
        end = log.end
        assert isinstance(scene.store, RedisStore)
        scene.store._on_data_loss("the server was replaced")
        assert log.reach > end
        with pytest.raises(NotLeader):
            scene.append(LOG, 3, 1)


@pytest.fixture
def entries(shared_redis: Callable[[str], RedisServer]) -> RedisNamespace:
    """A place where every record is an entry: the headers of producers are kept with the log."""
    server = shared_redis(PROGRAMS[1])
    return RedisNamespace(server, RedisEngine(server.url, LogFormat(10, entries_layout=True)))


async def test_the_heads_of_producers_are_kept(entries: RedisNamespace) -> None:
    async with entries.scene() as scene:
        await scene.acquire(LOG)
        producers = scene.store.producers
        assert producers is not None

        async def send(at: int, producer: int, sequence: int) -> None:
            first = at + scene.origin
            data = make_batch([b"x"], producer=(producer, 0, sequence), base_offset=first)
            batch = RecordBatch(data, first, first, 0)
            await scene.store.open_log(LOG).append([batch], first if at else 0, False).stored

        for number in range(12):
            await send(number, number % 4, number // 4)
        before = producers.recent_headers(LOG)
        log = await pack(scene)
        assert not log.headers
        assert producers.recent_headers(LOG) == before
        await pack(scene)
        producers.forget_producer(LOG, 2)
        assert log.forgotten
        assert not log.packed  # until Redis knows
        await pack(scene)
        await send(12, 1, 3)
    async with entries.scene() as scene:
        await scene.acquire(LOG)
        assert scene.store.producers is not None
        found = batch_headers(scene.store.producers.recent_headers(LOG), False)
        assert [(header.producer_id, header.base_sequence) for header in found if header.producer_id in (1, 2)] == [
            *((1, sequence) for sequence in range(4)),
        ]


async def test_a_log_whose_forgotten_producers_redis_does_not_take_is_not_packed(
    entries: RedisNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuse(*_: object, **__: object) -> None:
        raise StoreError("the server is away")

    async with entries.scene() as scene:
        await scene.fill(LOG, 1)
        log = find(scene)
        log.forgotten[7] = None
        with monkeypatch.context() as patch:
            patch.setattr(IdempotentCalls, "run", refuse)
            for _ in range(3):
                with pytest.raises(StoreError):
                    await scene.store.close_idle()
        assert list(log.forgotten) == [7]
        assert not log.packed
        await pack(scene)


# Logs that are used while memory is full of small objects, a few in each MiB, and what is left when these are gone.
_FLOOD = """
import sys
from pathlib import Path
from korvet_fast.store.redis.log.log import Log
from korvet_fast.store.redis.log.packed_log import unpack_log
from korvet_fast.store.redis.log.packed_log import pack_if_idle
from korvet_fast.store.redis.stream.segment_table import Segment
from korvet_fast.store.redis.stream.state import Totals
from korvet_fast.store.types import LogFormat

def memory():
    status = Path("/proc/self/status").read_text()
    return int(status.partition("RssAnon:")[2].split()[0]) >> 10

logs = [Log(f"orders:{number}", "korvet", LogFormat()) for number in range(300)]
before = memory()
flood = []
for number, log in enumerate(logs):
    flood.append([(f"{number} {each}", [each + 0.5]) for each in range(3000)])
    log.fencing_token, log.end, log.durable = f"token:{number}", (1 << 40) + number, (1 << 40) + number
    log.end_field, log.first, log.totals = b"%d" % log.end, b"%d-1" % number, Totals(1000 + number, number + 1, number)
    log.average, log.density, log.densest = number + 0.5, number + 1.5, number + 2.5
    log.segments.grow(Segment(1000, 2000 + number, 3000 + number, 4000, 5000, 6000), (1 << 20, 1 << 20))
    log.segments.trust(log.end)
    log.headers[1000 + number] = bytes([number % 256]) * 61
full = memory()
del flood
if "pack" in sys.argv:
    for log in logs * 2:
        pack_if_idle(log)
    assert all(log.packed for log in logs)
print(full - before, memory() - before)
"""


def test_packed_logs_keep_no_mib_of_small_objects() -> None:
    def left(*arguments: str) -> tuple[int, int]:
        said = subprocess.run(
            [sys.executable, "-c", _FLOOD, *arguments], check=True, capture_output=True, text=True
        ).stdout
        full, after = map(int, said.split())
        return full, after

    full, after = left()
    assert after > full / 2  # what packing is for
    full, after = left("pack")
    assert after < full / 10
