"""A client that commits offsets for groups while things break, and what it was answered.

It is no member, and reads nothing: the rules of what members read and of generations say nothing about it.
"""

import asyncio
import time
from asyncio import IncompleteReadError
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence

from broker_process import BrokerProcess
from client_thread import ClientThread
from commit_rules import find_back, find_lost
from faults.redis.records import COORDINATOR_AGAIN, try_commit, try_read_commit
from group_history import Answer
from journal import Journal
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
        self.journal = Journal()

    def work(self) -> None:
        asyncio.run(self._commit())

    async def _commit(self) -> None:
        while not self.enough.is_set():
            for group in self.groups:
                self.tried[group] += 1
                begun = time.monotonic()
                code = await self._try(group, self.tried[group])
                error = "REQUEST_TIMED_OUT" if code == UNKNOWN else "NOT_COORDINATOR" if code else ""
                answer = Answer(group, "", "commit", begun, time.monotonic(), error)
                self.journal.note_commit(self.name, (0, self.tried[group]), 0, answer)
                if code == 0:
                    self.acknowledged[group] = self.tried[group]
                else:
                    self.refusals += 1
                    await asyncio.sleep(0.02)

    async def _try(self, group: str, offset: int) -> int:
        """The answer of the broker that coordinates the group; UNKNOWN if another one may have stored it and died."""
        codes = set()
        for broker in self.brokers:
            try:
                async with connect(broker.port) as client:
                    code = await try_commit(client, group, offset)
            except (OSError, IncompleteReadError):
                code = UNKNOWN  # it is dead, or dies
            assert code in {0, UNKNOWN, *COORDINATOR_AGAIN}, code
            if not code:
                return 0
            codes.add(code)
        return UNKNOWN if UNKNOWN in codes else codes.pop()

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
        """Each group has what was acknowledged last, or what was sent since; and no commit went back."""
        asyncio.run(self._look())
        seen = len(self.journal.commits)
        while self.is_alive() and len(self.journal.commits) == seen:  # one that was read may not be noted yet
            time.sleep(0.005)
        broken = [*find_back(self.journal), *find_lost(self.journal)]
        assert not broken, f"{len(broken)} rules broken:\n" + "\n".join(broken[:20])

    async def _look(self) -> None:
        for group in self.groups:
            begun = time.monotonic()
            found = await self._read(group)
            self.journal.note_position((0, found), Answer(group, "", "fetch", begun, time.monotonic()))

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
