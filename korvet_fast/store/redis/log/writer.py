"""Appending: the batches that come for a log within a moment are one transaction of Redis; several are under way.

Usually a transaction holds what one turn of the loop brings. But producers send again as soon as they are answered: all
would come in one turn, and Redis and this broker would wait for each other. So a transaction is sent when half of the
appends that are awaited have come; all of them, where they are small.

A transaction is MULTI, a guard, XADDs, CLOSE, EXEC (scripts.py): all of it or nothing, and nothing unless this broker
has the log, and the log ends where this broker takes it to end. Appends end in the order of the log. `AppendRecovery`
(append_recovery.py) finds the outcome of every transaction whose answer is not a plain success.
"""

import asyncio
from collections import defaultdict
from collections.abc import Sequence
from functools import partial
from typing import cast

from korvet_fast._native import ReplyError, parse_replies
from korvet_fast.errors import StoreError
from korvet_fast.store.redis.connection.calls import IdempotentCalls
from korvet_fast.store.redis.connection.pipeline import PipelineDown
from korvet_fast.store.redis.connection.topology import Topology
from korvet_fast.store.redis.durability.rights import is_denial
from korvet_fast.store.redis.durability.sync import Durability
from korvet_fast.store.redis.log.append_recovery import AppendRecovery
from korvet_fast.store.redis.log.log import HEADER_SIZE, HEADERS_SIZE, AppendFailure, FencingTokens, Log
from korvet_fast.store.redis.log.packed_log import unpack_log
from korvet_fast.store.redis.log.producer_headers import list_forgotten
from korvet_fast.store.redis.log.settlement import Settlement
from korvet_fast.store.redis.log.window import Window
from korvet_fast.store.redis.stream.transaction import AppendTransaction
from korvet_fast.store.types import LARGE, Appending, NotLeader, OffsetConflict, RecordBatch, SegmentLimits
from korvet_fast.types import Buffer

DEPTH = 4  # transactions of one log that are sent before the first is answered; more wait, and go together
LARGEST = 128 << 10  # bytes of a transaction, and
MOST = 500  # appends in it; further ones go into the next
LITTLE = 32 << 10  # bytes on their way that are not worth two transactions

_TAKEN = "ERR The ID specified in XADD is equal or smaller"
_DONE = b"\r\n:1\r\n"  # the answer of CLOSE, last of all


class Writer:
    """Appends to all logs of a store."""

    def __init__(
        self, topology: Topology, durability: Durability, calls: IdempotentCalls, fencing_tokens: FencingTokens
    ) -> None:
        self._topology = topology
        self._durability = durability
        self._loop = asyncio.get_running_loop()
        self._due: list[Log] = []  # with something to send at the end of this turn
        self._fresh = 0  # appends in this turn
        self._in_flight = self._bytes = 0  # appends sent and not answered, and their bytes
        self._enough = 1  # so many in a turn are sent before it ends
        self._windows: defaultdict[str, Window] = defaultdict(Window)  # by the server's name
        self._settlement = Settlement(durability)
        self.recovery = AppendRecovery(topology, calls, fencing_tokens, self._settlement.settle, self._send)

    def append(
        self,
        log: Log,
        batches: Sequence[RecordBatch],
        at: int,
        sync: bool,
        copies: int = 1,
        segment_limits: SegmentLimits = LARGE,
    ) -> Appending:
        """See `store.interface.Append`. Raises `KorvetError` INVALID_RECORD too, for what a stream cannot hold."""
        if not log.fencing_token and not unpack_log(log):
            raise NotLeader(f"{log.name} is not acquired")
        if self._durability.unfit and (why := self._durability.durability_error(log.key, sync=False, copies=1)):
            raise StoreError(f"{log.name}: {why}")
        if at != log.end:
            raise OffsetConflict(log.end)
        need = sync, copies
        if not batches:
            return self._append_nothing(log, need)
        transaction = log.open
        if transaction is None or transaction.need != need or transaction.segment_limits != segment_limits:
            transaction = self._begin(log, need, segment_limits)
            log.layout.put(transaction, log.key, log.log_format, batches)
            log.transactions.append(transaction)
            log.open = transaction
            self._due.append(log)
        else:
            log.layout.put(transaction, log.key, log.log_format, batches)
        if log.log_format.entries_layout:
            for batch in batches:
                _note_header(log, transaction, batch)
        if transaction.size >= LARGEST or len(transaction.batches) >= MOST:
            log.open = None
        log.end = transaction.end
        self._fresh += 1
        if self._fresh == 1:
            self._loop.call_soon(self._end_turn)
        if self._fresh == self._enough:
            self._send_due()
        return transaction.appending

    def _begin(self, log: Log, need: tuple[bool, int], segment_limits: SegmentLimits) -> AppendTransaction:
        """The transaction that comes next."""
        transaction = AppendTransaction(
            self._loop, need, segment_limits, log.end, log.last_end_field(), log.last_totals()
        )
        before = log.transactions[-1] if log.transactions else None
        if transaction.waits or log.awaiting_durable or (before is not None and before.durable is not before.stored):
            transaction.promise_durable()  # without `sync` too: durability has no holes
        _open(log, transaction)
        return transaction

    def _append_nothing(self, log: Log, need: tuple[bool, int]) -> Appending:
        """Make the present entries of the log durable, without new ones."""
        transaction = self._begin(log, need, LARGE)
        if transaction.durable is transaction.stored:
            transaction.promise_durable()
        if log.transactions:
            log.transactions.append(transaction)
            log.open = None
        else:
            self._settlement.settle(log, transaction)
        return transaction.appending

    def _end_turn(self) -> None:
        self._fresh = 0
        self._send_due()
        self._enough = self._in_flight if self._bytes < LITTLE else (self._in_flight + 1) // 2

    def _send_due(self) -> None:
        due, self._due = self._due, []
        for log in due:
            self._send(log)
        self._topology.push()

    def _send(self, log: Log) -> None:
        """Send what may be sent now."""
        if log.failure is not None or log.in_flight >= DEPTH:
            return
        for transaction in log.transactions:
            if transaction.sent or not transaction.batches:
                continue
            try:
                if not self._post(log, transaction):
                    return
            except StoreError as error:
                self.recovery.note_failure(log, AppendFailure(error.detail, lost=True))
                return
            transaction.sent, transaction.refused = True, False
            log.in_flight += 1
            self._in_flight += len(transaction.batches)
            self._bytes += transaction.size
            if log.in_flight >= DEPTH:
                return

    def _post(self, log: Log, transaction: AppendTransaction) -> bool:
        """Send a transaction; returns whether the server has room for it. Raises `StoreError`."""
        pipeline = self._topology.pipeline(log.key)
        window = self._windows[pipeline.name]
        if not window.begin(log, transaction.size):
            return False
        if transaction.fencing_token != log.fencing_token:
            _open(log, transaction)
            log.layout.renew(transaction, log.key, log.log_format)
        if transaction is log.open:
            log.open = None
        try:
            transaction.forgotten = []
            if log.forgotten and not any(other.sent and other.forgotten for other in log.transactions):
                transaction.forgotten = list_forgotten(log)
            parts, commands = log.layout.pack(transaction, log.key, log.state_key, log.log_format)
            pipeline.post(parts, commands, partial(self._arrive, window, log, transaction))
        except StoreError:
            window.end(transaction.size)
            raise
        return True

    def _arrive(
        self, window: Window, log: Log, transaction: AppendTransaction, answer: list[Buffer], error: StoreError | None
    ) -> None:
        """A transaction was answered, or lost."""
        self._in_flight -= len(transaction.batches)
        self._bytes -= transaction.size
        window.end(transaction.size)
        self._end_append(log, transaction, answer, error)
        while (waiting := window.take()) is not None:
            self._send(waiting)

    def _end_append(
        self, log: Log, transaction: AppendTransaction, answer: list[Buffer], error: StoreError | None
    ) -> None:
        if transaction.stored.done():  # the server's history broke meanwhile
            return
        log.in_flight -= 1
        if error is not None:
            transaction.refused = isinstance(error, PipelineDown)
            self.recovery.note_failure(log, AppendFailure(str(error), lost=True))
            return
        raw = cast(bytearray, answer[0])
        if raw.endswith(_DONE) and b"\r\n-" not in raw:
            if log.failure is None:
                if log.transactions[0] is not transaction:  # no append may end with the outcome of another
                    self.recovery.note_failure(log, AppendFailure(""))
                    return
                log.transactions.pop(0)
                self._settlement.settle(log, transaction)
                self._send(log)
                return
        else:
            why, transaction.refused = _explain(raw)
            if is_denial(why):
                self._durability.recheck(log.key)
            if log.failure is None:
                self.recovery.note_failure(log, AppendFailure(why))
                return
        self.recovery.recover_soon(log)


def _open(log: Log, transaction: AppendTransaction) -> None:
    """Give the transaction the log's present fencing token."""
    transaction.fencing_token = log.fencing_token
    transaction.opening = [2, log.key, log.state_key, log.fencing_token, transaction.end_before]


def _note_header(log: Log, transaction: AppendTransaction, batch: RecordBatch) -> None:
    """An idempotent producer's batch: its header is kept with the log, as the batch itself is taken apart."""
    header = bytearray(memoryview(batch.data)[:HEADER_SIZE])
    producer = int.from_bytes(header[43:51], "big", signed=True)
    if producer >= 0:
        header[8:12] = (HEADER_SIZE - 12).to_bytes(4, "big")  # a batch of no records: the header is all of it
        before = transaction.headers.get(producer) or log.last_headers(producer)
        transaction.headers[producer] = (before + header)[-HEADERS_SIZE:]
        log.forgotten.pop(producer, None)


def _explain(raw: Buffer) -> tuple[str, bool]:
    """Why a transaction was not carried out, and whether it is certain that no part of it was.

    In the server's words; "" if only the log can tell the reason.
    """
    *answers, last = parse_replies(raw)
    if not isinstance(last, list):
        nothing = isinstance(last, ReplyError) and last.message.startswith("EXECABORT")
    elif last[-1] == 0 and not isinstance(last[0], ReplyError):
        return "", True  # the guard said no
    else:
        answers = last
        nothing = all(isinstance(answer, ReplyError) or answer == 0 for answer in last)
    errors = [answer.message for answer in answers if isinstance(answer, ReplyError)]
    return next((error for error in errors if not error.startswith(_TAKEN)), ""), nothing
