"""Commands about one key whose outcome does not change if they are carried out twice: sent again until answered."""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any

from korvet_fast._native import ReplyError, encode_commands, parse_reply
from korvet_fast.errors import StoreError
from korvet_fast.store.redis.connection.answer_window import SMALL, AnswerWindow
from korvet_fast.store.redis.connection.error_reply import explain_error
from korvet_fast.store.redis.connection.pipeline import PipelineLost, Word
from korvet_fast.store.redis.connection.topology import Topology, is_retriable
from korvet_fast.types import Buffer

BUDGET = 20.0  # seconds within which a call must be answered, and the outcome of an append be known
_SHORTEST, _LONGEST = 0.01, 0.2  # seconds before another attempt, from the third on


class IdempotentCalls:
    """Calls to whichever master has a key."""

    def __init__(self, topology: Topology) -> None:
        self._topology = topology
        self._windows: defaultdict[str, AnswerWindow] = defaultdict(AnswerWindow)  # by the server's name

    async def ask(
        self,
        key: str,
        packed: Buffer,
        replies: int = 1,
        within: float = BUDGET,
        again: Callable[[], Buffer] | None = None,
        size: int = 0,
    ) -> list[Buffer]:
        """The replies as they came. Raises `StoreError` for an error among them, or if there is none in `within` s.

        `again` makes the commands that take the place of `packed` after the connection was lost. `size`: bytes of the
        replies, about, where they may be large.
        """
        loop = asyncio.get_running_loop()
        deadline = loop.time() + within
        wait = 0.0
        while True:
            try:
                raw = await self._send(key, packed, replies, size)
            except StoreError as error:
                why = error.detail
                if again is not None and isinstance(error, PipelineLost):
                    packed = again()
            else:
                error_reply = next((each for each in raw if each[:1] == b"-"), None)
                if error_reply is None:
                    return raw
                why = parse_reply(error_reply).message
                if not is_retriable(why):
                    raise StoreError(f"{key}: {explain_error(why)}")
            if loop.time() > deadline:
                raise StoreError(f"{key}: {why}; tried for {within:.3g} s")
            await asyncio.sleep(wait)
            await self._topology.repair(key, why, deadline - loop.time())
            wait = min(2 * wait, _LONGEST) or _SHORTEST

    async def _send(self, key: str, packed: Buffer, replies: int, size: int) -> list[Buffer]:
        pipeline = self._topology.pipeline(key)
        if size <= SMALL:
            return await pipeline.send(packed, replies)
        async with self._windows[pipeline.name].turn(size):
            return await pipeline.send(packed, replies)

    async def run(self, script: str, keys: Sequence[str], *words: Word, within: float = BUDGET) -> Any:
        """Run a script, whose keys are of one slot, and return its answer. Raises `StoreError`."""
        packed = encode_commands([["EVAL", script, len(keys), *keys, *words]])
        (raw,) = await self.ask(keys[0], packed, within=within)
        answer = parse_reply(raw)
        assert not isinstance(answer, ReplyError)
        return answer
