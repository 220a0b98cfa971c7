"""Layout `batches`: offsets begin at 0, ids are `<base offset>-1`; logs that older brokers made keep their ids."""

from collections.abc import Callable
from typing import Any

import pytest

from korvet_fast.store.redis.store import RedisStore
from redis_server import PROGRAMS, RedisServer
from store.conftest import LOG_FORMATS
from store.engines import RedisEngine
from store.record_batches import make_record_batch, read_all
from store.redis_log.redis_namespace import LOG, RedisNamespace

OLD = (1, 1000, 30)  # records of the batches in a log as older brokers left it


@pytest.fixture
def batches(shared_redis: Callable[[str], RedisServer]) -> RedisNamespace:
    """A place where every batch is an entry."""
    server = shared_redis(PROGRAMS[1])
    return RedisNamespace(server, RedisEngine(server.url, LOG_FORMATS["batches"]))


def ids(place: RedisNamespace) -> list[str]:
    """The ids of the stream."""
    return [entry[0].decode() for entry in place.call("XRANGE", place.key, "-", "+")]


def leave_an_old_log(place: RedisNamespace) -> int:
    """Make the log of a broker that made ids as the layout `entries` does; the log's end."""
    end, size = 1, 0
    for count in OLD:
        data = make_record_batch(end, count, time=1000).data
        place.call("XADD", place.key, f"{end >> 10}-{end & 1023}", "batch", bytes(data))
        end, size = end + count, size + len(data)
    state: dict[str, Any] = {"form": "batches:10", "epoch": 3, "fence": "older:0", "end": end}
    state |= {"size": size, "count": len(OLD), "time": 2000}
    place.call("HSET", place.state_key, *(word for pair in state.items() for word in pair))
    return end


async def test_finding_4_9_the_first_offset_is_0(batches: RedisNamespace) -> None:
    async with batches.scene() as scene:
        granted = await scene.store.shared.acquire(LOG, batches.log_format, epoch=0, floor=0)
        assert (granted.bounds[:3], granted.last_record_end) == ((0, 0, 0), 0)
        end = 0
        for count in (3, 1, 1020, 5):
            await scene.store.open_log(LOG).append([make_record_batch(end, count)], end, sync=False).durable
            end += count
        assert ids(batches) == ["0-1", "3-1", "4-1", "1024-1"]
        assert await read_all(scene.store, LOG) == list(range(1029))
        assert await read_all(scene.store, LOG, 1020) == list(range(1020, 1029))
        assert (await scene.store.delete_records(LOG, 2)).start == 2
        assert ids(batches)[0] == "0-1"  # it holds offset 2
        assert (await scene.store.delete_records(LOG, 4)).start == 4
        assert ids(batches) == ["4-1", "1024-1"]


async def test_other_programs_ids_are_stepped_over(batches: RedisNamespace) -> None:
    async with batches.scene() as scene:
        await scene.acquire(LOG)
        await scene.fill(LOG, 2)
        for foreign, end in (("2-0", 2), ("2-7", 3), ("9-1", 10)):
            batches.xadd("value", "x", at=foreign)
            assert (await scene.acquire(LOG)).bounds.end == end
        await scene.fill(LOG, 2)
        assert ids(batches) == ["0-1", "2-0", "2-7", "9-1", "10-1"]
        assert await scene.read_all(LOG) == [0, 1, 10, 11]


async def test_a_log_of_an_older_broker_keeps_its_ids(batches: RedisNamespace) -> None:
    end = leave_an_old_log(batches)
    assert end == 1032
    async with batches.scene() as scene:
        granted = await scene.store.shared.acquire(LOG, batches.log_format, epoch=0, floor=0)
        assert (granted.epoch, granted.last_record_end) == (4, end)
        assert granted.bounds[:2] == (1, end)
        assert await read_all(scene.store, LOG) == list(range(1, end))
        await scene.store.open_log(LOG).append([make_record_batch(end, 2, time=3000)], end, sync=False).durable
        assert ids(batches) == ["0-1", "0-2", "0-1002", "1-8"]
        assert batches.call("HGET", batches.state_key, "form") == b"batches:10"
        assert (await scene.store.delete_records(LOG, 500)).start == 500
        assert ids(batches)[0] == "0-2"
        assert (await scene.store.apply_retention(LOG, older_than=2500)).start == end
        assert ids(batches) == ["1-8"]
        await scene.drop(LOG)
        await scene.store.shared.acquire(LOG, batches.log_format, epoch=0, floor=0)
        await scene.store.open_log(LOG).append([make_record_batch(0)], 0, sync=False).durable
        assert ids(batches) == ["0-1"]


async def test_a_broker_that_does_not_lead_an_older_log_shows_its_groups_there(batches: RedisNamespace) -> None:
    leave_an_old_log(batches)
    async with batches.scene() as scene:
        assert isinstance(scene.store, RedisStore)
        scene.store.shared.declare(LOG, batches.log_format)
        scene.store.groups.mirror_offset(LOG, "g", 1002)
        await scene.store._mirror._round()
        (row,) = batches.call("XINFO", "GROUPS", batches.key)
        about: dict[bytes, Any] = dict(zip(row[::2], row[1::2], strict=True))
        assert (about[b"last-delivered-id"], about[b"lag"]) == (b"0-1001", 1)
