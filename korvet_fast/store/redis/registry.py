"""Keys and values: hashes, compared and set by one script, with a counter of changes.

An area is what keys begin with up to their first "/", such as `topics`; keys without one are in the area "".

korvet:@registry:topics               field = key; the field @version counts changes, @lineage is made up with the hash
{korvet:@registry:topics}:@writers    field = key, value = the token of the `save` that set it last
                                      (of several keys, under the first)

A save whose outcome is unknown is sent again: the token tells a copy of it that it has been carried out.

No broker removes a hash. So where one is gone, or has another lineage than before, somebody has emptied the server, and
the server itself does not tell: it is the same process with the same replication history.
"""

import asyncio
import secrets
from itertools import count
from typing import Any, NamedTuple

from korvet_fast._native import ReplyError, encode_commands, parse_reply
from korvet_fast.errors import StoreError
from korvet_fast.store.redis.connection.error_reply import explain_error
from korvet_fast.store.redis.connection.topology import REPAIR, Topology, is_retriable
from korvet_fast.store.types import CompareAndSet

_VERSION = b"@version"
_LINEAGE = b"@lineage"
_GROWTH = 64  # bytes by which a value may grow when the server has reached its memory limit

# Arguments: the token; then for each key: itself, present value expected (then the value), present value wanted (then
# the value). Redis runs a script as one step and logs its writes as one.
SAVE = """
local token = ARGV[1]
if redis.call('HGET', KEYS[2], ARGV[2]) == token then return 1 end
for i = 2, #ARGV, 5 do
  local present = redis.call('HGET', KEYS[1], ARGV[i])
  if ARGV[i + 1] == '1' then
    if present ~= ARGV[i + 2] then return 0 end
  elseif present then
    return 0
  end
end
for i = 2, #ARGV, 5 do
  local keeps = ARGV[i + 3] == '1'
  if not keeps then
    redis.call('HDEL', KEYS[1], ARGV[i])
    redis.call('HDEL', KEYS[2], ARGV[i])
  elseif ARGV[i + 1] == '0' or ARGV[i + 2] ~= ARGV[i + 4] then
    redis.call('HSET', KEYS[1], ARGV[i], ARGV[i + 4])
  end
end
if ARGV[5] == '1' then redis.call('HSET', KEYS[2], ARGV[2], token) end
if redis.call('HINCRBY', KEYS[1], '@version', 1) == 1 then redis.call('HSET', KEYS[1], '@lineage', token) end
return 1
"""
# Brokers must be able to say that they are alive, and give up what they hold, when no memory is left.
SAVE_ALWAYS = "#!lua flags=allow-oom" + SAVE


class Registry:
    """The keys of a store. What `save` has answered is as durable as the server's own configuration makes it."""

    def __init__(self, topology: Topology) -> None:
        self._topology = topology
        self._namespace = topology.url.namespace
        self._program = secrets.token_hex(8)
        self._saves = count()
        # By hash: the topology's generation when it was read last, and its lineage; None if there was no such hash.
        self._lineages: dict[str, tuple[int, bytes | None]] = {}

    async def load(self, key: str) -> bytes | None:
        """See `KeyStore.load`."""
        place = self._find_hash(key)
        value: bytes | None = (await self._call(place, "HGET", place, key)).reply
        return value

    async def save(self, key: str, value: bytes | None, expected: bytes | None, *others: CompareAndSet) -> bool:
        """See `KeyStore.save`. Raises `StoreError` if the outcome could not be learned in time."""
        changes = (CompareAndSet(key, value, expected), *others)
        arguments: list[bytes | str | int] = [f"{self._program}:{next(self._saves)}"]
        for change in changes:
            arguments.append(change.key)
            for wanted in (change.expected, change.value):
                arguments += (1, wanted) if wanted is not None else (0, "")
        place = self._find_hash(key)
        script = SAVE if any(map(_grows, changes)) else SAVE_ALWAYS
        done = await self._call(place, "EVAL", script, 2, place, f"{{{place}}}:@writers", *arguments)
        if done.again and value is None and not done.reply:
            return await self.load(key) is None  # an earlier copy may have removed it, and its token with it
        return bool(done.reply)

    async def scan(self, prefix: str) -> dict[str, bytes]:
        """See `KeyStore.scan`. Raises `StoreError` too where the server was emptied, when that was told."""
        place, generation = self._find_hash(prefix), self._topology.generation
        row: list[bytes] = (await self._call(place, "HGETALL", place)).reply
        values = dict(zip(row[::2], row[1::2], strict=True))
        self._check_lineage(place, generation, values.pop(_VERSION, None), values.pop(_LINEAGE, None))
        found = {name.decode(): value for name, value in values.items()}
        return {key: found[key] for key in sorted(found) if key.startswith(prefix)}

    async def version(self, prefix: str) -> int:
        """See `SharedStore.version`. Raises as `scan`."""
        place, generation = self._find_hash(prefix), self._topology.generation
        version, lineage = (await self._call(place, "HMGET", place, _VERSION, _LINEAGE)).reply
        self._check_lineage(place, generation, version, lineage)
        # A failover can take changes back, and others can make up for their number.
        return (generation << 48) + int(version or 0)

    def _check_lineage(self, place: str, generation: int, version: bytes | None, lineage: bytes | None) -> None:
        """Tell all listeners if this hash is not the one that was read before, in the same history of the server.

        `generation`: of before it was read. Raises `StoreError` then.
        """
        if generation != self._topology.generation:
            return  # a break was found meanwhile, and told
        found = None if version is None else lineage or b""  # hashes of earlier versions have none
        known_in, known = self._lineages.get(place, (generation, None))
        self._lineages[place] = generation, found
        if known_in == generation and known is not None and found != known:
            why = f"{self._topology.url} was emptied while it ran (FLUSHALL, FLUSHDB or DEL): {place} is gone"
            self._topology.break_history(why)
            raise StoreError(why)

    def _find_hash(self, key: str) -> str:
        area, slash, _ = key.partition("/")
        return f"{self._namespace}:@registry:{area if slash else ''}"

    async def _call(self, place: str, *command: bytes | str | int) -> "_Done":
        packed = encode_commands([command])
        loop = asyncio.get_running_loop()
        deadline = loop.time() + REPAIR
        again = False
        while True:
            try:
                (raw,) = await self._topology.pipeline(place).send(packed)
            except StoreError as error:
                why = error.detail
            else:
                answer = parse_reply(raw)
                if not isinstance(answer, ReplyError):
                    return _Done(answer, again)
                why = answer.message
                if not is_retriable(why):
                    raise StoreError(f"the registry: {explain_error(why)}")
            again = True
            await self._topology.repair(place, why, deadline - loop.time())


def _grows(change: CompareAndSet) -> bool:
    if change.expected is None:
        return change.value is not None
    return len(change.value or b"") - len(change.expected) > _GROWTH


class _Done(NamedTuple):
    reply: Any
    again: bool  # the command was sent more than once
