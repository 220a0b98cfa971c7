"""A broker that leads a partition over a shared store: appends on their way, and their outcomes."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from batches import make_batch
from core_world import AppendResult, SharedWorld, put, run_shared
from korvet_fast.core.partition.partition import Partition
from shared_store import Server

DENSE = {"storage_layout": "batches"}


def over(body: Callable[[SharedWorld], Coroutine[Any, Any, None]], **configs: str) -> None:
    async def run() -> None:
        async with run_shared(Server()) as world:
            await world.create(**(configs or DENSE))
            await body(world)

    asyncio.run(run())


async def outcome(partition: Partition, appended: AppendResult) -> int | str:
    """The offset a client is told, or the error."""
    assert appended.done is not None
    await asyncio.wait([appended.done])
    failure = appended.done.exception()
    return appended.base_offset if failure is None else partition.leader.explain(failure).error


async def deliver(world: SharedWorld) -> None:
    """Let the server have what was held back."""
    held, world.store.held = world.store.held or [], None
    for apply in held:
        apply()
    await asyncio.sleep(0)
    await asyncio.sleep(0)


def hold(world: SharedWorld, *values: bytes, acks: int = -1) -> list[AppendResult]:
    """Appends, one for each value, that are on their way."""
    world.store.held = []
    return [put(world.partition, make_batch([value]), acks) for value in values]
