"""What became of appends that were not plainly carried out: looked for in the log itself, never guessed.

The log gets another mark first, so that nothing sent earlier can be carried out any more, however late it arrives.
Then what is there is there, and what is not is sent again, in order, unless the server said why it must not be.
"""

import asyncio
from collections.abc import Callable

from korvet_fast.errors import OutcomeUnknown, StoreError
from korvet_fast.store.interface import Stale
from korvet_fast.store.redis.background import begin
from korvet_fast.store.redis.calls import BUDGET, Calls
from korvet_fast.store.redis.group import Group
from korvet_fast.store.redis.ids import find_end, pack_id
from korvet_fast.store.redis.log import Log, Marks, Trouble
from korvet_fast.store.redis.scripts import REGAIN
from korvet_fast.store.redis.topology import Topology, curable

_BREATH = 0.005  # seconds before the next attempt, where the server does not say what to wait for


class Resolver:
    """Deals with trouble, each log by itself."""

    def __init__(
        self,
        topology: Topology,
        calls: Calls,
        marks: Marks,
        settle: Callable[[Log, Group], None],
        send: Callable[[Log], None],
    ) -> None:
        """`settle` is told of a group that is in the log, `send` goes on with those that are not."""
        self._topology = topology
        self._calls = calls
        self._marks = marks
        self._settle = settle
        self._send = send
        self._loop = asyncio.get_running_loop()

    def take(self, log: Log, trouble: Trouble) -> None:
        """Something went wrong with an append under way; it counts only if nothing did before."""
        if log.trouble is None:
            log.trouble = trouble
            log.deadline = log.deadline or self._loop.time() + BUDGET
        self.go_on(log)

    def go_on(self, log: Log) -> None:
        """See to the trouble once every answer has come that will come."""
        if log.trouble is not None and not log.flying and (log.resolving is None or log.resolving.done()):
            log.resolving = begin(self._resolve(log, log.trouble))

    async def _resolve(self, log: Log, trouble: Trouble) -> None:
        deadline = log.deadline
        fence = self._marks.make()
        sent = [group for group in log.groups if group.sent and group.entries]
        ids = [pack_id(group.last, log.form.bits) for group in sent]
        try:
            if trouble.lost or curable(trouble.why):
                await self._topology.repair(log.key, trouble.why, deadline - self._loop.time())
            elif not trouble.why:
                await asyncio.sleep(_BREATH)
            keys = (log.key, log.state_key)
            left = deadline - self._loop.time()
            answer = await self._calls.run(REGAIN, keys, log.fence, fence, *ids, within=left)
        except StoreError as error:
            self._lose(log, f"{log.name}: the server cannot be asked what became of the append: {error.detail}")
            return
        if not answer[0]:
            self._step_down(log, int(answer[1] or -1))
            return
        _, mark, top, *there = answer
        log.fence = fence
        for group, found in zip(sent, there, strict=True):
            if (not found and not log.form.single) or int(group.mark) > int(mark or 0):
                break
            log.groups.popleft()
            self._settle(log, group)
        log.mark = mark or b""
        self._carry_on(log, trouble, find_end(top, log.form.bits), deadline)

    def _carry_on(self, log: Log, trouble: Trouble, top: int, deadline: float) -> None:
        """With what is not in the log, and will not be unless it is sent again. `top`: the offset after its last id."""
        remaining = next((group for group in log.groups if group.entries), None)
        if remaining is not None:
            if not trouble.lost and trouble.why and not curable(trouble.why):
                self.fail(log, StoreError(f"{log.name}: the Redis server refused the append: {trouble.why}"))
                return
            if top > remaining.entries[0].first:
                log.end = max(top, int(log.mark or 0))
                self._end(log, Stale(log.end))
                log.trouble = None
                return
            if self._loop.time() > deadline:
                self.fail(log, StoreError(f"{log.name}: an append was refused again and again: {trouble.why}"))
                return
            remaining.after = log.mark
            for group in log.groups:
                group.sent = group.unknown = False
        log.trouble = None
        log.resolving = None  # what is sent now may meet the next trouble at once
        self._send(log)

    def _step_down(self, log: Log, end: int) -> None:
        """Another program has the log."""
        for group in log.groups:
            unknown = OutcomeUnknown(f"{log.name}: another program has it; it is unknown what became of the append")
            _end(group, unknown if group.unknown else Stale(end, fenced=True))
        self._detach(log)

    def fail(self, log: Log, error: StoreError) -> None:
        """End everything under way with an error; the log is not attached any more."""
        for group in log.groups:
            _end(group, error)
        self._detach(log)

    def _lose(self, log: Log, why: str) -> None:
        """As `fail`, where nobody knows what became of what was sent."""
        for group in log.groups:
            _end(group, OutcomeUnknown(why) if group.sent and not group.refused else StoreError(why))
        self._detach(log)

    def break_off(self, log: Log, why: str) -> None:
        """End everything under way; what is stored will not become durable either. The log is not attached any more."""
        self._lose(log, why)
        rounds = list(log.rounds)
        log.rounds.clear()
        for group in rounds:
            if not group.durable.done():
                group.durable.fail(OutcomeUnknown(why))

    def _end(self, log: Log, error: Exception) -> None:
        groups = list(log.groups)
        log.groups.clear()
        log.open = None
        for group in groups:
            _end(group, error)

    def _detach(self, log: Log) -> None:
        resolving, log.resolving = log.resolving, None
        if resolving is not None and resolving is not asyncio.current_task():
            resolving.cancel()
        log.groups.clear()
        log.open = None
        log.fence = ""
        log.flying = 0
        log.trouble = None
        log.deadline = 0.0


def _end(group: Group, error: Exception) -> None:
    if not group.stored.done():
        group.stored.fail(error)
    if not group.durable.done():
        group.durable.fail(error)
