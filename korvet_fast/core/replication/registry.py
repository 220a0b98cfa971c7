"""The verbs of `KeyStore` for every broker: the leader of the metadata log carries them out."""

import asyncio
from collections.abc import Awaitable, Callable

from korvet_fast.core.clock import Clock
from korvet_fast.core.replication.peers import KeyAnswer, KeyRequest, KeyVerb, NotCarriedOut
from korvet_fast.errors import OutcomeUnknown, StoreError
from korvet_fast.store.types import CompareAndSet

_PATIENCE = 5.0  # seconds without a leader, after which a request fails
_ANSWERING = 2.0  # more seconds: a leader says after 5 that most brokers do not answer, and clients wait for 10
_AGAIN = 0.05


class Registry:
    """`ask` sends a request to the present leader of the metadata log, which may be this broker.

    `failure`: why the last request was not answered, "" once a save was.
    """

    def __init__(self, clock: Clock, ask: Callable[[KeyRequest], Awaitable[KeyAnswer]]) -> None:
        self._clock = clock
        self._ask = ask
        self.failure = ""

    async def load(self, key: str) -> bytes | None:
        """See `KeyStore.load`."""
        return (await self._send(KeyRequest(KeyVerb.LOAD, key))).rows.get(key)

    async def scan(self, prefix: str) -> dict[str, bytes]:
        """See `KeyStore.scan`."""
        found: dict[str, bytes] = {}
        answer = KeyAnswer()
        while not answer.done:
            answer = await self._send(KeyRequest(KeyVerb.SCAN, prefix, after=max(found, default="")))
            found |= answer.rows
        return found

    async def save(self, key: str, value: bytes | None, expected: bytes | None, *others: CompareAndSet) -> bool:
        """See `KeyStore.save`."""
        request = KeyRequest(KeyVerb.SAVE, changes=(CompareAndSet(key, value, expected), *others))
        return (await self._send(request)).done

    async def version(self, prefix: str) -> int:
        """See `SharedStore.version`."""
        return (await self._send(KeyRequest(KeyVerb.VERSION, prefix))).number

    async def _send(self, request: KeyRequest) -> KeyAnswer:
        """Have it carried out, once. Raises `StoreError`."""
        try:
            answer = await self._try(request)
        except StoreError as error:
            self.failure = error.detail
            raise
        if request.verb is KeyVerb.SAVE:  # a leader whose disk is full still answers the others
            self.failure = ""
        return answer

    async def _try(self, request: KeyRequest) -> KeyAnswer:
        until, reason = self._clock.monotonic() + _PATIENCE, f"no answer within {_PATIENCE + _ANSWERING:g} s"

        async def ask() -> KeyAnswer:
            nonlocal reason
            while True:
                try:
                    return await self._ask(request)
                except NotCarriedOut as error:
                    reason = error.detail
                    if self._clock.monotonic() >= until:
                        raise StoreError(_explain(reason)) from None
                await asyncio.sleep(_AGAIN)

        asking = asyncio.get_running_loop().create_task(ask())  # who waits may be in no task: no asyncio.timeout
        try:
            done, _ = await asyncio.wait([asking], timeout=_PATIENCE + _ANSWERING)
        finally:
            asking.cancel()
        if done:
            return asking.result()
        kind = OutcomeUnknown if request.verb is KeyVerb.SAVE else StoreError
        raise kind(_explain(reason))


def _explain(reason: str) -> str:
    return (
        f"the metadata log has no leader that can be reached ({reason}). If its broker is gone, name another one: "
        "korvet-fast partition lead @registry 0 --broker N"
    )
