"""Slow commands over connections of their own."""

import asyncio
from contextlib import suppress

from faults.redis.proxy import RedisProxy
from korvet_fast.errors import StoreError
from store.redis_connection.scene import scene


async def test_connections_that_are_gone_are_made_anew(proxy: RedisProxy) -> None:
    async with scene(proxy.url) as there:
        await there.call("SET", "k", "v")
        for _ in range(3):
            proxy.reset_all()
            await asyncio.sleep(0.05)  # the loop hears of it
            with suppress(StoreError):
                await there.call("GET", "k")
            assert await there.call("GET", "k") == b"v"
