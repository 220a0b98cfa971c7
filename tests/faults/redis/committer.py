"""A client that commits offsets for groups while things break, and what it was answered."""

import asyncio
import time
from asyncio import IncompleteReadError
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence

from broker_process import BrokerProcess
from client_thread import ClientThread
from faults.redis.records import COORDINATOR_AGAIN, try_commit, try_read_commit
from korvet_fast.wire.kafka.errors import CODES
from raw_connection import connect

UNKNOWN = CODES["COORDINATOR_NOT_AVAILABLE"]  # whether it was stored


class Committer(ClientThread):
    """Commits 1, 2, … for each group in turn, at whichever broker coordinates it, until told that it is `enough`."""

    def __init__(self, brokers: Sequence[BrokerProcess], groups: Iterable[str]) -> None:
        super().__init__("committer")
        self.brokers = brokers
        self.groups = list(groups)
        self.tried: defaultdict[str, int] = defaultdict(int)  # by group: the last offset that was sent
        self.acknowledged: defaultdict[str, int] = defaultdict(lambda: -1)
        self.refusals = 0

    def work(self) -> None:
        asyncio.run(self._commit())

    async def _commit(self) -> None:
        while not self.enough.is_set():
            for group in self.groups:
                self.tried[group] += 1
                code = await self._try(group, self.tried[group])
                if code == 0:
                    self.acknowledged[group] = self.tried[group]
                else:
                    self.refusals += 1
                    await asyncio.sleep(0.02)

    async def _try(self, group: str, offset: int) -> int:
        """The last answer of a broker: it coordinates the group, unless none does now."""
        code = UNKNOWN
        for broker in self.brokers:
            try:
                async with connect(broker.port) as client:
                    code = await try_commit(client, group, offset)
            except (OSError, IncompleteReadError):
                continue  # it is dead, or dies
            if code not in COORDINATOR_AGAIN:
                break
        assert code in {0, UNKNOWN, *COORDINATOR_AGAIN}, code
        return code

    def wait_for(self, more: int = 1) -> None:
        """Until every group has so many more acknowledged."""
        targets = {group: self.acknowledged[group] + more for group in self.groups}
        self._wait(lambda: all(self.acknowledged[group] >= targets[group] for group in self.groups))

    def wait_for_refusal(self) -> None:
        """Until a commit has been refused, or its outcome is unknown."""
        before = self.refusals
        self._wait(lambda: self.refusals > before)

    def _wait(self, done: Callable[[], bool], within: float = 240.0) -> None:
        deadline = time.monotonic() + within
        while not done():
            assert self.is_alive() and time.monotonic() < deadline, f"acknowledged: {dict(self.acknowledged)}"
            time.sleep(0.005)

    def check(self) -> None:
        """Each group has what was acknowledged last, or what was sent since."""
        asyncio.run(self._check())

    async def _check(self) -> None:
        for group in self.groups:
            acknowledged = self.acknowledged[group]  # before the answer: the thread may still commit
            found = await self._read(group)
            assert acknowledged <= found <= self.tried[group], (group, acknowledged, found)

    async def _read(self, group: str) -> int:
        while True:
            for broker in self.brokers:
                if broker.process is not None:
                    async with connect(broker.port) as client:
                        code, found = await try_read_commit(client, group)
                    if not code:
                        return found
                    assert code in COORDINATOR_AGAIN, code
            await asyncio.sleep(0.02)
