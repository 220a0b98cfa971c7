"""Whether clients should be sent to a broker."""

import asyncio
from pathlib import Path

from core_world import run_broker
from korvet_fast.core.network_use import NetworkUse
from korvet_fast.core.readiness import find_obstacle


def test_a_broker_that_cannot_read_its_acls_is_not_ready(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with run_broker(tmp_path, "authorizer=acl", "super.users=User:root") as world:
            authorizer = world.broker.authorizer
            assert authorizer is not None
            assert find_obstacle(world.broker) == "the broker is starting"  # nobody can connect yet
            world.broker.network_use = lambda: NetworkUse(0, 0, 1)
            assert find_obstacle(world.broker) == ""
            authorizer.note_change(ready=False)
            assert find_obstacle(world.broker) == "the ACLs cannot be read: only super users may do anything"

    asyncio.run(scenario())
