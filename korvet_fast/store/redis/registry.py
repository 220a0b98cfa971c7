"""Keys and values: one hash, compared and set by one script, with a counter of changes.

korvet:@registry               field = key; the field @version counts changes
{korvet:@registry}:@writers    field = key, value = who set it last: a mark of its own for every `save`

A save whose outcome is unknown is sent again: the mark tells a copy of it that it has been carried out.
"""

import asyncio
import secrets
from itertools import count
from typing import Any, NamedTuple

from korvet_fast._native import ReplyError, pack, reply
from korvet_fast.errors import StoreError
from korvet_fast.store.redis.topology import REPAIR, Topology, curable

_VERSION = "@version"

# Arguments: key, mark, present value expected (then the value), present value wanted (then the value). Redis runs a
# script as one step and logs its writes as one.
SAVE = """
local key, mark, expects, expected, keeps, value = unpack(ARGV)
if redis.call('HGET', KEYS[2], key) == mark then return 1 end
local present = redis.call('HGET', KEYS[1], key)
if expects == '1' then
  if present ~= expected then return 0 end
elseif present then
  return 0
end
if keeps == '1' then
  redis.call('HSET', KEYS[1], key, value)
  redis.call('HSET', KEYS[2], key, mark)
else
  redis.call('HDEL', KEYS[1], key)
  redis.call('HDEL', KEYS[2], key)
end
redis.call('HINCRBY', KEYS[1], '@version', 1)
return 1
"""


class Registry:
    """The keys of a store. What `save` has answered is as durable as the server's own configuration makes it."""

    def __init__(self, topology: Topology) -> None:
        self._topology = topology
        self._key = f"{topology.url.namespace}:@registry"
        self._writers = f"{{{self._key}}}:@writers"
        self._program = secrets.token_hex(8)
        self._saves = count()
        self._seen: dict[str, bytes] = {}  # everything, as of the change `_at`
        self._at = -1

    async def load(self, key: str) -> bytes | None:
        """See `Store.load`."""
        value: bytes | None = (await self._call("HGET", self._key, key)).reply
        return value

    async def save(self, key: str, value: bytes | None, expected: bytes | None) -> bool:
        """See `Store.save`. Raises `StoreError` if the outcome could not be learned in time."""
        mark = f"{self._program}:{next(self._saves)}"
        arguments: list[bytes | str | int] = [key, mark]
        for wanted in (expected, value):
            arguments += (1, wanted) if wanted is not None else (0, "")
        done = await self._call("EVAL", SAVE, 2, self._key, self._writers, *arguments)
        if done.again and value is None and not done.reply:
            return await self.load(key) is None  # an earlier copy may have removed it, and its mark with it
        return bool(done.reply)

    async def scan(self, prefix: str) -> dict[str, bytes]:
        """See `Store.scan`. Asks for everything only when something has changed."""
        if await self.changed() != self._at:
            generation = self._topology.generation
            row: list[bytes] = (await self._call("HGETALL", self._key)).reply
            seen = {name.decode(): value for name, value in zip(row[::2], row[1::2], strict=True)}
            self._at = _number(generation, seen.pop(_VERSION, None))
            self._seen = dict(sorted(seen.items()))
        return {key: value for key, value in self._seen.items() if key.startswith(prefix)}

    async def changed(self) -> int:
        """See `Store.changed`."""
        generation = self._topology.generation
        return _number(generation, (await self._call("HGET", self._key, _VERSION)).reply)

    async def _call(self, *command: bytes | str | int) -> "_Done":
        packed = pack([command])
        loop = asyncio.get_running_loop()
        deadline = loop.time() + REPAIR
        again = False
        while True:
            try:
                (raw,) = await self._topology.lane(self._key).send(packed)
            except StoreError as error:
                why = error.detail
            else:
                answer = reply(raw)
                if not isinstance(answer, ReplyError):
                    return _Done(answer, again)
                why = answer.message
                if not curable(why):
                    raise StoreError(f"the registry: {why}")
            again = True
            await self._topology.repair(self._key, why, deadline - loop.time())


class _Done(NamedTuple):
    reply: Any
    again: bool  # the command was sent more than once


def _number(generation: int, version: bytes | None) -> int:
    # A failover can take changes back, and others can make up for their number.
    return (generation << 48) + int(version or 0)
