"""The store's history breaks under a coordinator: what it has acknowledged comes back, however it finds out."""

import asyncio
import json
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from batches import NOW
from core_world import SharedWorld, run_shared
from group_broker import until
from korvet_fast.core.groups.documents import OffsetAndMetadata, TopicPartition, partition_for
from korvet_fast.errors import StoreError
from shared_store import Server

BROKER = "node.id=1"
NAMES = [f"group-{number}" for number in range(5)]
PLACE = TopicPartition("t", 0)
WHY = "the server came back with another history"


def over(body: Callable[[Server, SharedWorld], Coroutine[Any, Any, None]], then: int = 7) -> None:
    """With a broker that is alone, a topic `t`, and groups that have committed 7; `then`: what they get afterwards."""

    async def run() -> None:
        server = Server()
        async with run_shared(server, BROKER) as one:
            await one.create()
            for name in NAMES:
                assert await commit(one, name, 7) == ""
            await body(server, one)
            assert await answers(one) == [then] * len(NAMES)
        async with run_shared(server, BROKER) as again:  # the server knows them too
            assert await answers(again) == [then] * len(NAMES)

    asyncio.run(asyncio.wait_for(run(), 120))


async def commit(world: SharedWorld, group_id: str, offset: int) -> str:
    return (await world.broker.groups.offsets.commit(group_id, "", None, -1, {PLACE: OffsetAndMetadata(offset)}))[PLACE]


async def committed(world: SharedWorld, group_id: str) -> int | str:
    """The offset that clients get; an error while there is none."""
    error, found = await world.broker.groups.offsets.fetch(group_id, [PLACE])
    return error or (found[PLACE].offset if PLACE in found else -1)


async def answers(world: SharedWorld) -> list[int | str]:
    """What clients get for each group, when they get something else than that they have to ask again."""
    found: list[int | str] = []
    for name in NAMES:
        while isinstance(answer := await committed(world, name), str):
            await world.broker._retry_failed()
            await world.broker.cluster.poll()
            await asyncio.sleep(0.01)
        found.append(answer)
    return found


def lose(server: Server, keys: dict[str, bytes]) -> None:
    """The server has this registry now; nobody knows yet."""
    server.streams.clear()
    server.keys = keys
    server.changes.update(dict.fromkeys(server.changes, 1))


@pytest.mark.parametrize("turns", range(24))
def test_what_was_committed_comes_back_wherever_a_look_at_the_brokers_meets_the_break(turns: int) -> None:
    async def body(server: Server, one: SharedWorld) -> None:
        looking = asyncio.create_task(one.broker.cluster.poll())
        await asyncio.sleep(0)
        lose(server, {})
        if turns % 2:
            await asyncio.sleep(0)
        server.change_history(WHY)
        for _ in range(turns // 2):
            await asyncio.sleep(0)
        await one.broker.cluster.poll()
        await looking

    over(body)


def break_after_scan(server: Server, world: SharedWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    """The groups that are read next are from the lost history, and the history breaks before they are loaded."""
    original = world.store.scan

    async def scan(prefix: str) -> dict[str, bytes]:
        found = await original(prefix)
        if any("/offset/" in key for key in found):
            monkeypatch.setattr(world.store, "scan", original)
            lose(server, {})
            server.change_history(WHY)
            await world.broker._restore()  # what there was to be told again was told before this is loaded
        return found

    monkeypatch.setattr(world.store, "scan", scan)


def test_groups_that_are_loaded_while_the_history_breaks_are_told_again(monkeypatch: pytest.MonkeyPatch) -> None:
    async def body(server: Server, one: SharedWorld) -> None:
        groups = one.broker.groups.partitions
        groups._resign({partition_for(NAMES[0])})  # as if another broker had released it just now
        break_after_scan(server, one, monkeypatch)
        await groups.reconcile()
        assert one.broker.generation.number == 1

    over(body)


def test_groups_that_are_loaded_again_while_the_history_breaks_are_told_again(monkeypatch: pytest.MonkeyPatch) -> None:
    async def body(server: Server, one: SharedWorld) -> None:
        break_after_scan(server, one, monkeypatch)
        for runtime in one.broker.groups.partitions.runtimes:
            one.broker.groups.partitions.runtimes.fail(runtime, StoreError("an answer was lost"))
        await until(lambda: one.broker.generation.number == 1)

    over(body)


def test_what_others_have_committed_since_the_break_is_kept() -> None:
    """A coordinator that was replaced in the new history knows older offsets only."""

    async def body(server: Server, one: SharedWorld) -> None:
        lose(server, {key: value for key, value in server.keys.items() if not key.startswith("brokers/")})
        server.change_history(WHY)
        for key, value in server.keys.items():
            if "/offset/" in key:
                server.keys[key] = json.dumps(json.loads(value) | {"offset": 9, "ms": NOW + 1}).encode()
        await one.broker.cluster.poll()

    over(body, then=9)
