"""How far groups of consumers have come, where Redis's own tools look for it: `XINFO GROUPS korvet:orders:0`.

A mirror, up to a second late, and nothing is ever read back from it. In the layout `entries` the lag is in records; in
`batches` an entry is a batch, and counts as read as soon as one of its records is. A lag that would take long to count
is left out: the tools show none then, as Redis does itself where it cannot tell.
"""

import asyncio
import logging
from contextlib import suppress

from korvet_fast.errors import StoreError
from korvet_fast.store.redis.background import begin
from korvet_fast.store.redis.connection.calls import IdempotentCalls
from korvet_fast.store.redis.log.bounds import read_bounds
from korvet_fast.store.redis.log.log import Log
from korvet_fast.store.redis.stream.ids import pack_id

_CALM = 1.0  # seconds between two rounds: of the positions that follow each other meanwhile one is shown
_WITHIN = 5.0  # seconds for one call; the next round tries again
_COUNTED = {True: 1000, False: 100}  # entries counted in one step of Redis, of one record each or of many
_STEPS = 10

# Arguments: group, id of its position, where the counting goes on, how many are counted so far, how many at most now,
# whether this is the last step. Answers where the counting has to go on and how many were counted, or nothing.
MIRROR_OFFSET = """
local group, id, from, before, most, last = unpack(ARGV)
if redis.call('EXISTS', KEYS[1]) == 0 then return false end
local rest = redis.call('XRANGE', KEYS[1], '(' .. from, '+', 'COUNT', most)
local words = {KEYS[1], group, id}
if #rest < tonumber(most) then
  local about, has = redis.call('XINFO', 'STREAM', KEYS[1]), {}
  for i = 1, #about, 2 do has[about[i]] = about[i + 1] end
  words[4], words[5] = 'ENTRIESREAD', string.format('%.0f', has['entries-added'] - before - #rest)
elseif last == '0' then
  return {rest[#rest][1], before + #rest}
end
local done = redis.pcall('XGROUP', 'SETID', unpack(words))
if done.err and string.find(done.err, 'NOGROUP', 1, true) then
  redis.call('XGROUP', 'CREATE', unpack(words))
elseif done.err then
  return done
end
return false
"""
REMOVE_GROUP = "if redis.call('EXISTS', KEYS[1]) == 1 then redis.call('XGROUP', 'DESTROY', KEYS[1], ARGV[1]) end"

_logger = logging.getLogger(__name__)


class Mirror:
    """Writes the offsets that groups committed last to the streams' consumer groups, once a second."""

    def __init__(self, calls: IdempotentCalls) -> None:
        self._calls = calls
        self._latest: dict[tuple[str, str], tuple[Log, int | None]] = {}  # by stream and group
        self._working: asyncio.Task[None] | None = None

    def mirror_offset(self, log: Log, group: str, offset: int | None) -> None:
        """See `GroupOffsetMirror.mirror_offset`."""
        self._latest[log.key, group] = log, offset
        if self._working is None or self._working.done():
            self._working = begin(self._work())

    async def close(self) -> None:
        """Write the offsets that are not written yet, if that is quickly done."""
        if self._working is not None:
            self._working.cancel()
            await asyncio.wait([self._working])
        with suppress(TimeoutError):
            async with asyncio.timeout(_CALM):
                await self._round()

    async def _work(self) -> None:
        while self._latest:
            await self._round()
            await asyncio.sleep(_CALM)

    async def _round(self) -> None:
        latest, self._latest = self._latest, {}
        written: set[tuple[str, str]] = set()
        try:
            for (key, group), (log, offset) in latest.items():
                try:
                    if offset is None:
                        await self._calls.run(REMOVE_GROUP, (key,), group, within=_WITHIN)
                    else:
                        await self._write_offset(log, group, offset)
                except StoreError as error:
                    _logger.debug("XINFO GROUPS %s does not show where %s is: %s", key, group, error.detail)
                else:
                    written.add((key, group))
        finally:  # also where the round was cancelled
            self._latest = {place: row for place, row in latest.items() if place not in written} | self._latest

    async def _write_offset(self, log: Log, group: str, offset: int) -> None:
        if not log.log_format.entries_layout and not log.is_acquired:
            await read_bounds(self._calls, log)  # whether its ids have bits, only its leader knows already
        position = at = pack_id(offset - 1, log.log_format.bits) if offset else "0-0"
        counted, most = 0, _COUNTED[log.log_format.entries_layout]
        for step in range(_STEPS):
            words = (group, position, at, counted, most, int(step == _STEPS - 1))
            more = await self._calls.run(MIRROR_OFFSET, (log.key,), *words, within=_WITHIN)
            if more is None:
                return
            at, counted = more[0].decode(), more[1]
