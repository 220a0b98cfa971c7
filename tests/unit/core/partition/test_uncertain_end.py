"""Where a log ends is not known yet: nobody is told that an offset lies above its end."""

import asyncio
from typing import Any

import pytest

from core_world import SharedWorld, run_shared, send
from korvet_fast.core.client_session import ClientSession
from korvet_fast.core.fair_executor import FairExecutor
from korvet_fast.core.fetch.service import fetch, fetch_one
from korvet_fast.errors import Errors, KorvetError, StoreError
from shared_store import Server

DENSE = {"storage_layout": "batches"}


@pytest.mark.parametrize("configs", [DENSE, {}])
def test_who_could_not_take_a_log_over_again(configs: dict[str, str]) -> None:
    """A consumer that has read what the leader meanwhile stored would begin anew."""

    async def run() -> None:
        server = Server()
        async with run_shared(server) as one:
            partition = await one.create(**configs)
            await send(partition, b"a")
            acquire = one.store.acquire
            async with run_shared(server) as other:
                await send(other.partition, b"b", b"c")
                end = other.partition.log.end
            assert partition.log.end < end
            partition.leader.resign("another broker leads")

            async def fail(*_: Any, **__: Any) -> Any:
                raise StoreError("another program took it over at the same time")

            one.store.acquire = fail  # type: ignore[method-assign]
            await partition.leader.become_leader()
            assert partition.leadership.leads
            with pytest.raises(KorvetError, match="NOT_LEADER_OR_FOLLOWER"):
                partition.check_offset(end)
            one.store.acquire = acquire  # type: ignore[method-assign]
            await partition.leader.recover()
            partition.check_offset(end)
            with pytest.raises(KorvetError, match="OFFSET_OUT_OF_RANGE"):
                partition.check_offset(end + 1)

    asyncio.run(run())


async def fetch_errors(world: SharedWorld, offset: int) -> set[Errors | None]:
    """The answers about this offset to a fetch of one partition, and to one of several."""
    workers = FairExecutor(1, "check")
    session, position = ClientSession(world.broker, workers), (0, offset, 1 << 20, -1)
    one = await fetch_one(session, "t", position, 1 << 20, 1, 0)
    ((among,), _) = await fetch(session, [("t", [position]), ("u", [position])], 1 << 20, 1, 0)
    workers.shutdown()
    return {part.error and part.error.error for part in (one, among)}


@pytest.mark.parametrize("configs", [DENSE, {}])
def test_a_former_leader_that_has_noticed_nothing(configs: dict[str, str]) -> None:
    """The broker asks the store before telling a consumer that its offset lies above the end."""

    async def run() -> None:
        server = Server()
        async with run_shared(server) as former:
            await send(await former.create(**configs), b"a")
            async with run_shared(server, "node.id=7") as present:
                await send(present.partition, b"b", b"c")
                end = present.partition.log.end
                assert former.partition.leadership.leads
                noticed: list[bool] = []
                former.broker.cluster.refresh_soon = lambda: noticed.append(True)
                assert former.partition.log.end < end
                assert await fetch_errors(former, end + 1) == {Errors.NOT_LEADER_OR_FOLLOWER}
                assert noticed
                former.later()
                assert await fetch_errors(former, end + 1) == {Errors.NOT_LEADER_OR_FOLLOWER}
                assert await fetch_errors(present, end + 1) == {Errors.OFFSET_OUT_OF_RANGE}

    asyncio.run(run())
