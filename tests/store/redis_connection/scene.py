"""An open topology, and ways to wait for what its watch sees."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from korvet_fast._native import ReplyError, encode_commands, parse_reply
from korvet_fast.store.redis.connection.pipeline import PipelineDown
from korvet_fast.store.redis.connection.topology import Topology, is_retriable
from korvet_fast.store.redis.connection.url import parse_url


class Scene:
    """A topology, and what it has told."""

    def __init__(self, topology: Topology) -> None:
        self.topology = topology
        self.told: list[str] = []
        self.within = 20.0  # seconds for repairs
        topology.on_history_change(self.told.append)

    async def ask(self, key: str, *command: bytes | str | int) -> Any:
        """One command on the pipeline of a key."""
        (raw,) = await self.topology.pipeline(key).send(encode_commands([command]))
        return parse_reply(raw)

    async def call(self, *command: bytes | str | int, key: str = "") -> Any:
        """One slow command to the master of a key, over a connection of its own."""
        return await self.topology.call(self.topology.master(key), *command)

    async def insist(self, key: str, *command: bytes | str | int) -> Any:
        """As `ask`, again and again while the error is one that passes."""
        while isinstance(answer := await self.ask(key, *command), ReplyError) and is_retriable(answer.message):
            await self.topology.repair(key, answer.message)
        return answer

    async def lose(self, key: str) -> None:
        """Wait until the connection of a key is seen to be lost, and repair it."""
        try:
            pipeline = self.topology.pipeline(key)
            await self.until(lambda: not pipeline.up)
        except PipelineDown:
            pass
        await self.topology.repair(key, "lost", self.within)

    async def until(self, true: Callable[[], bool]) -> None:
        """Wait until something is so; the test's own timeout ends it."""
        while not true():
            await asyncio.sleep(0.01)


@asynccontextmanager
async def scene(url: str) -> AsyncIterator[Scene]:
    """Opened and closed."""
    topology = Topology(parse_url(url))
    there = Scene(topology)
    await topology.open()
    try:
        yield there
    finally:
        await topology.close()
