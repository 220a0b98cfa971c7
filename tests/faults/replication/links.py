"""Networks between brokers that are cut: the bytes stay away, and nobody is told."""

import asyncio
import threading
from collections.abc import Mapping
from contextlib import AsyncExitStack
from itertools import permutations

from faults.proxy import Fault, start_proxy


class Links:
    """A proxy for each broker on its way to each other one; `ports` has them by both ids. `with` starts and ends them.

    `brokers`: the ports on which the brokers listen for each other, by id.
    """

    def __init__(self, brokers: Mapping[int, int]) -> None:
        self.ports: dict[tuple[int, int], int] = {}
        self._brokers = brokers
        self._gates: dict[frozenset[int], asyncio.Event] = {}
        self._loop = asyncio.new_event_loop()
        self._started = threading.Event()
        self._over = asyncio.Event()
        self._thread = threading.Thread(target=self._loop.run_until_complete, args=(self._run(),), daemon=True)

    def __enter__(self) -> "Links":
        self._thread.start()
        assert self._started.wait(60), "the proxies do not start"
        return self

    def __exit__(self, *_: object) -> None:
        self.heal()
        self._loop.call_soon_threadsafe(self._over.set)
        self._thread.join()
        self._loop.close()

    async def _run(self) -> None:
        async with AsyncExitStack() as stack:
            for here, there in permutations(self._brokers, 2):
                gate = self._gates.setdefault(frozenset((here, there)), asyncio.Event())
                gate.set()
                fault = Fault(answers=gate, requests=gate)
                proxy = await stack.enter_async_context(start_proxy(self._brokers[there], lambda _, met=fault: met))
                self.ports[here, there] = proxy.port
            self._started.set()
            await self._over.wait()

    def cut(self, broker: int) -> None:
        """No byte of this broker reaches another one, and none reaches it."""
        for pair, gate in self._gates.items():
            if broker in pair:
                self._loop.call_soon_threadsafe(gate.clear)

    def heal(self) -> None:
        """Everything arrives, also what was held back."""
        for gate in self._gates.values():
            self._loop.call_soon_threadsafe(gate.set)
