"""Where a log ends is not known yet: nobody is told that an offset lies above its end."""

import asyncio
from typing import Any

import pytest

from core_world import run_shared, send
from korvet_fast.errors import KorvetError, StoreError
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
