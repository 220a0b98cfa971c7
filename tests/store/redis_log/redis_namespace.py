"""A namespace of a Redis server: stores over it, and what is really in it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from korvet_fast.store.redis.store import RedisStore
from redis_server import RedisServer
from store.engines import RedisEngine
from store.scene import Scene

LOG = "orders:0"


class RedisNamespace:
    """Stores over one namespace."""

    def __init__(self, server: RedisServer, maker: RedisEngine) -> None:
        self.server = server
        self.maker = maker
        self.log_format = maker.log_format
        self.key = f"{maker.namespace}:{LOG}"
        self.state_key = f"{{{self.key}}}:@state"

    @asynccontextmanager
    async def scene(self, url: str = "", timeout: float = 5.0) -> AsyncIterator[Scene]:
        """An open store; `url`: another way to the server; `timeout`: seconds that an answer may take."""
        maker = RedisEngine(url or self.maker.url, self.log_format)
        maker.namespace = self.maker.namespace
        maker.timeout = timeout
        store = maker.make()
        await store.open()
        try:
            yield Scene(store, self.log_format, self.maker.origin)
        finally:
            await store.close()

    def call(self, *command: Any) -> Any:
        """A command of another program's."""
        return self.server.call(*command)

    def id(self, offset: int) -> str:
        """The id at a relative offset."""
        if not self.log_format.entries_layout:
            return f"{offset}-1"
        absolute = offset + self.maker.origin
        return f"{absolute >> self.log_format.bits}-{absolute & ((1 << self.log_format.bits) - 1)}"

    def snapshot(self) -> tuple[Any, ...]:
        """Everything about the log: what refused appends must not change."""
        state = self.call("HGETALL", self.state_key)
        if not self.call("EXISTS", self.key):
            return (state,)
        info = self.call("XINFO", "STREAM", self.key)
        # The tree is rebuilt now and then; what is in it counts.
        return state, [pair for pair in zip(info[::2], info[1::2], strict=True) if not pair[0].startswith(b"radix")]

    def xadd(self, *fields: str | bytes, at: str = "*") -> bytes:
        """Another program adds a record; its id."""
        added: bytes = self.call("XADD", self.key, at, *fields)
        return added


def log_of(scene: Scene) -> Any:
    """The engine's own view of the log."""
    assert isinstance(scene.store, RedisStore)
    return scene.store._logs[LOG]
