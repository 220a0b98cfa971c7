"""Appending: what is appended to a log at a time is one transaction of Redis, and some are under way.

Usually that is what one turn of the loop brings. But producers send again when they are answered, so all would come at
once, and Redis and we would wait for each other in turn: when half of what was awaited has come (all of it, if that is
little), it is sent.

A transaction is MULTI, a guard, XADDs, CLOSE, EXEC (scripts.py): all of it or nothing, and nothing unless the log is
ours and ends where we think. Outcomes are told in the order of the log. Whatever is not a plain success is looked into
by the resolver (resolver.py).
"""

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import cast

from korvet_fast._native import ReplyError, replies
from korvet_fast.core.types import Buffer
from korvet_fast.errors import OutcomeUnknown, StoreError, TooFewCopies
from korvet_fast.store.interface import LARGE, Appending, Detached, Entry, Piece, Stale
from korvet_fast.store.redis.calls import Calls
from korvet_fast.store.redis.group import Group, Word
from korvet_fast.store.redis.lane import LaneDown
from korvet_fast.store.redis.log import HEAD, HEADS, Log, Marks, Trouble
from korvet_fast.store.redis.resolver import Resolver
from korvet_fast.store.redis.scripts import CLOSE
from korvet_fast.store.redis.sync import Durability
from korvet_fast.store.redis.topology import Topology

DEPTH = 4  # transactions of one log that are sent before the first is answered; more wait, and go together
LARGEST = 128 << 10  # bytes of a transaction, and
MOST = 500  # appends in it; further ones go into the next
LITTLE = 32 << 10  # bytes on their way that are not worth two transactions
PRODUCERS = 20_000  # of one log whose heads are kept

_TAKEN = "ERR The ID specified in XADD is equal or smaller"
_DONE = b"\r\n:1\r\n"  # what CLOSE answers, last of all


class Writer:
    """Appends to all logs of a store."""

    def __init__(self, topology: Topology, durability: Durability, calls: Calls, marks: Marks) -> None:
        self._topology = topology
        self._durability = durability
        self._loop = asyncio.get_running_loop()
        self._due: list[Log] = []  # with something to send at the end of this turn
        self._fresh = 0  # appends in this turn
        self._flying = self._bytes = 0  # appends sent and not answered, and what they hold
        self._enough = 1  # so many in a turn are sent before it ends
        self.resolver = Resolver(topology, calls, marks, self._settle, self._send)

    def append(self, log: Log, entries: Sequence[Entry], at: int, need: tuple[bool, int], piece: Piece) -> Appending:
        """See `Store.append`. `need`: (sync, copies). Raises `KorvetError` INVALID_RECORD too, for too many headers."""
        if not log.fence:
            raise Detached(f"{log.name} is not attached")
        if at != log.end:
            raise Stale(log.end)
        if not entries:
            return self._append_nothing(log, need)
        group = log.open
        if group is None or group.need != need or group.piece != piece:
            group = self._begin(log, need, piece)
            log.layout.put(group, log.key, log.form, entries)
            log.groups.append(group)
            log.open = group
            self._due.append(log)
        else:
            log.layout.put(group, log.key, log.form, entries)
        if log.form.single:
            for entry in entries:
                _note_head(log, group, entry)
        if group.size >= LARGEST or len(group.entries) >= MOST:
            log.open = None
        log.end = group.end
        self._fresh += 1
        if self._fresh == 1:
            self._loop.call_soon(self._end_turn)
        if self._fresh == self._enough:
            self._send_due()
        return group.appending

    def _begin(self, log: Log, need: tuple[bool, int], piece: Piece) -> Group:
        """A group that comes next."""
        group = Group(need, piece, log.end, log.last_mark(), log.last_totals())
        before = log.groups[-1] if log.groups else None
        if group.waits or log.rounds or (before is not None and before.durable is not before.stored):
            group.promise_durable()  # without `sync` too: durability has no holes
        _open(log, group)
        return group

    def _append_nothing(self, log: Log, need: tuple[bool, int]) -> Appending:
        """What is there already is to become durable."""
        group = self._begin(log, need, LARGE)
        if group.durable is group.stored:
            group.promise_durable()
        if log.groups:
            log.groups.append(group)
            log.open = None
        else:
            self._settle(log, group)
        return group.appending

    def _end_turn(self) -> None:
        self._fresh = 0
        self._send_due()
        self._enough = self._flying if self._bytes < LITTLE else (self._flying + 1) // 2

    def _send_due(self) -> None:
        due, self._due = self._due, []
        for log in due:
            self._send(log)
        self._topology.push()

    def _send(self, log: Log) -> None:
        """Send what may be sent now."""
        if log.trouble is not None or log.flying >= DEPTH:
            return
        for group in log.groups:
            if group.sent or not group.entries:
                continue
            if group.fence != log.fence:
                _open(log, group)
                log.layout.renew(group, log.key, log.form)
            if group is log.open:
                log.open = None
            try:
                parts, commands = log.layout.pack(group, _close(log, group))
                self._topology.lane(log.key).post(parts, commands, partial(self._arrive, log, group))
            except StoreError as error:
                self.resolver.take(log, Trouble(error.detail, lost=True))
                return
            group.sent, group.refused = True, False
            log.flying += 1
            self._flying += len(group.entries)
            self._bytes += group.size
            if log.flying >= DEPTH:
                return

    def _arrive(self, log: Log, group: Group, answer: list[Buffer], error: StoreError | None) -> None:
        """A transaction was answered, or lost."""
        self._flying -= len(group.entries)
        self._bytes -= group.size
        if group.stored.done():  # the server's history broke meanwhile
            return
        log.flying -= 1
        if error is not None:
            group.unknown = not isinstance(error, LaneDown)
            self.resolver.take(log, Trouble(str(error), lost=True))
            return
        raw = cast(bytearray, answer[0])
        if raw.endswith(_DONE) and b"\r\n-" not in raw:
            if log.trouble is None:
                log.groups.popleft()
                self._settle(log, group)
                self._send(log)
                return
        else:
            why, group.refused = _explain(raw)
            if log.trouble is None:
                self.resolver.take(log, Trouble(why))
                return
        self.resolver.go_on(log)

    # -- settling ------------------------------------------------------------------------------------------------

    def _settle(self, log: Log, group: Group) -> None:
        """A group that is in the log: the first of those whose outcome is open."""
        if group.entries:
            log.mark = group.mark
            log.totals = group.totals
            log.deadline = 0.0
            for row in group.rows:
                log.pieces.grow(row, group.limit)
            if group.heads:
                self._keep_heads(log, group)
        group.stored.set_result(None)
        if group.durable is group.stored:
            if group.end > log.durable:
                log.durable = group.end
        else:
            self._make_durable(log, group)
        while log.groups and not log.groups[0].entries:
            self._settle(log, log.groups.popleft())

    def _keep_heads(self, log: Log, group: Group) -> None:
        for producer, heads in group.heads.items():
            log.heads[producer] = heads
            log.heads.move_to_end(producer)
        while len(log.heads) > PRODUCERS:
            log.forgotten.append(log.heads.popitem(last=False)[0])

    def _make_durable(self, log: Log, group: Group) -> None:
        log.rounds.append(group)
        round_ = None
        if group.waits:
            try:
                round_ = self._durability.wait(log.key, *group.need)
            except StoreError as error:
                group.refusal = TooFewCopies(error.detail)  # it is stored
        if round_ is None:
            group.kept = True
            self._tell_durable(log)
        else:
            round_.add_done_callback(partial(self._end_round, log, group))

    def _end_round(self, log: Log, group: Group, round_: "asyncio.Future[None]") -> None:
        error = round_.exception()
        group.kept = True
        if error is not None:
            why = error.detail if isinstance(error, StoreError) else repr(error)
            group.refusal = error if isinstance(error, OutcomeUnknown) else OutcomeUnknown(why)
        self._tell_durable(log)

    def _tell_durable(self, log: Log) -> None:
        """In the order of the log."""
        while log.rounds and log.rounds[0].kept:
            group = log.rounds.popleft()
            if group.durable.done():
                continue
            if group.refusal is not None:
                group.durable.fail(group.refusal)
            else:
                log.durable = max(log.durable, group.end)
                group.durable.set_result(None)


def _open(log: Log, group: Group) -> None:
    """Under the log's present mark."""
    group.fence = log.fence
    group.opening = [2, log.key, log.state_key, log.fence, group.after]


def _close(log: Log, group: Group) -> list[tuple[Word, ...]]:
    """The commands that end a transaction."""
    size, number, time = group.totals
    words: list[Word] = ["EVAL", CLOSE, 2, log.key, log.state_key]
    words += ["end", group.mark, "size", size, "count", number, "time", time]
    for producer, heads in group.heads.items():
        words += [f"p{producer}", heads]
    closing: list[tuple[Word, ...]] = [tuple(words), ("EXEC",)]
    if log.forgotten:
        closing.insert(0, ("HDEL", log.state_key, *(f"p{producer}" for producer in log.forgotten)))
        log.forgotten.clear()
    return closing


def _note_head(log: Log, group: Group, entry: Entry) -> None:
    """An idempotent producer's batch: its head is kept with the log, as the batch itself is taken apart."""
    head = bytearray(memoryview(entry.data)[:HEAD])
    producer = int.from_bytes(head[43:51], "big", signed=True)
    if producer >= 0:
        head[8:12] = (HEAD - 12).to_bytes(4, "big")  # a batch of no records: the head is all of it
        before = group.heads.get(producer) or log.last_heads(producer)
        group.heads[producer] = (before + head)[-HEADS:]


def _explain(raw: Buffer) -> tuple[str, bool]:
    """Why a transaction was not carried out, and whether it is certain that no part of it was.

    In the server's words; "" if the reason has to be looked for in the log.
    """
    *answers, last = replies(raw)
    if not isinstance(last, list):
        nothing = isinstance(last, ReplyError) and last.message.startswith("EXECABORT")
    elif last[-1] == 0:
        return "", True  # the guard said no
    else:
        answers = last
        nothing = all(isinstance(answer, ReplyError) for answer in last)
    errors = [answer.message for answer in answers if isinstance(answer, ReplyError)]
    return next((error for error in errors if not error.startswith(_TAKEN)), ""), nothing
