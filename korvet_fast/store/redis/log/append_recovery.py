"""Finds the outcome of appends whose answer is missing or unexpected: it reads the log, and never guesses.

First the log gets another fencing token, so that Redis refuses whatever was sent earlier, however late it arrives. Then
appends that are in the log are settled, and the others are sent again in order, unless the server gave a reason not to.
"""

import asyncio
from collections.abc import Callable

from korvet_fast.errors import OutcomeUnknown, StoreError
from korvet_fast.store.redis.background import begin
from korvet_fast.store.redis.connection.calls import BUDGET, IdempotentCalls
from korvet_fast.store.redis.connection.error_reply import explain_error
from korvet_fast.store.redis.connection.topology import Topology, is_retriable
from korvet_fast.store.redis.durability.rights import is_denial
from korvet_fast.store.redis.log.log import AppendFailure, FencingTokens, Log, Lost
from korvet_fast.store.redis.stream.ids import find_end, pack_id
from korvet_fast.store.redis.stream.scripts import REPLACE_FENCE
from korvet_fast.store.redis.stream.state import headers_field
from korvet_fast.store.redis.stream.transaction import AppendTransaction
from korvet_fast.store.types import OffsetConflict

_BREATH = 0.005  # seconds before the next attempt, where the server does not say what to wait for


class AppendRecovery:
    """Finds out the outcome of failed appends, each log by itself."""

    def __init__(
        self,
        topology: Topology,
        calls: IdempotentCalls,
        fencing_tokens: FencingTokens,
        settle: Callable[[Log, AppendTransaction], None],
        send: Callable[[Log], None],
    ) -> None:
        """`settle` gets each transaction that is in the log; `send` sends again those that are not."""
        self._topology = topology
        self._calls = calls
        self._fencing_tokens = fencing_tokens
        self._settle = settle
        self._send = send
        self._loop = asyncio.get_running_loop()

    def note_failure(self, log: Log, failure: AppendFailure) -> None:
        """An append under way failed; of several failures the first one counts."""
        if log.failure is None:
            log.failure = failure
            log.deadline = log.deadline or self._loop.time() + BUDGET
        self.recover_soon(log)

    def recover_soon(self, log: Log) -> None:
        """Begin the recovery once all answers under way have come."""
        if log.failure is not None and not log.in_flight and (log.recovering is None or log.recovering.done()):
            log.recovering = begin(self._recover(log, log.failure))

    async def _recover(self, log: Log, failure: AppendFailure) -> None:
        deadline = log.deadline
        fencing_token = self._fencing_tokens.make()
        sent = [transaction for transaction in log.transactions if transaction.sent and transaction.batches]
        ids = [pack_id(transaction.last, log.log_format.bits) for transaction in sent]
        try:
            if failure.lost or is_retriable(failure.why):
                await self._topology.repair(log.key, failure.why, deadline - self._loop.time())
            elif not failure.why:
                await asyncio.sleep(_BREATH)
            keys = (log.key, log.state_key)
            left = deadline - self._loop.time()
            answer = await self._calls.run(REPLACE_FENCE, keys, log.fencing_token, fencing_token, *ids, within=left)
        except StoreError as error:
            self._lose(log, f"{log.name}: the server cannot be asked what became of the append: {error.detail}")
            return
        if not answer[0]:
            self._step_down(log, int(answer[1] or -1))
            return
        _, end_field, last_id_end, *there = answer
        log.fencing_token = fencing_token
        for transaction, found in zip(sent, there, strict=True):
            if (not found and not log.log_format.entries_layout) or int(transaction.end_field) > int(end_field or 0):
                break
            log.transactions.pop(0)
            self._settle(log, transaction)
        log.end_field = end_field or b""
        self._resume(log, failure, find_end(last_id_end, log.log_format.bits), deadline)

    def _resume(self, log: Log, failure: AppendFailure, last_id_end: int, deadline: float) -> None:
        """Send again the appends that are not in the log, or fail them. `last_id_end`: behind the stream's last id."""
        remaining = next((transaction for transaction in log.transactions if transaction.batches), None)
        if is_denial(failure.why):  # the log can be acquired again once the right is there
            self.fail(log, StoreError(f"{log.name}: the Redis server refused the append: {explain_error(failure.why)}"))
            return
        if remaining is not None:
            if not failure.lost and failure.why and not is_retriable(failure.why):
                self.fail(
                    log, StoreError(f"{log.name}: the Redis server refused the append: {explain_error(failure.why)}")
                )
                return
            if last_id_end > remaining.batches[0].first:
                log.end = max(last_id_end, int(log.end_field or 0))
                self._end(log, OffsetConflict(log.end))
                log.failure = None
                return
            if self._loop.time() > deadline:
                self.fail(log, StoreError(f"{log.name}: an append was refused again and again: {failure.why}"))
                return
            remaining.end_before = log.end_field
            for transaction in log.transactions:
                transaction.sent = False
        log.failure = None
        log.recovering = None  # the next send may fail at once
        self._send(log)

    def _step_down(self, log: Log, end: int) -> None:
        """Another program has the log."""
        for transaction in log.transactions:
            if transaction.sent and not transaction.refused:
                why = f"{log.name}: another program has it; it is unknown what became of the append"
                _end(transaction, OutcomeUnknown(why))
            else:
                _end(transaction, OffsetConflict(end, fenced=True))
        self._resign(log)

    def fail(self, log: Log, error: StoreError) -> None:
        """End every append whose outcome is open with an error; the log is not acquired any more."""
        for transaction in log.transactions:
            _end(transaction, error)
        self._resign(log)

    def _lose(self, log: Log, why: str) -> None:
        """As `fail`, but the outcome of the appends that were sent is unknown."""
        for transaction in log.transactions:
            unknown = transaction.sent and not transaction.refused
            if unknown and transaction.batches:
                fields = [headers_field(producer) for producer in (*transaction.headers, *transaction.forgotten)]
                log.lost.append(Lost(log.layout.list_ids(transaction, log.log_format), fields))
            _end(transaction, OutcomeUnknown(why) if unknown else StoreError(why))
        self._resign(log)

    def abort(self, log: Log, why: str) -> None:
        """As `fail` with the outcome unknown, also for appends that are stored but not durable."""
        self._lose(log, why)
        awaiting_durable = list(log.awaiting_durable)
        log.awaiting_durable.clear()
        for transaction in awaiting_durable:
            if not transaction.durable.done():
                transaction.durable.fail(OutcomeUnknown(why))

    def _end(self, log: Log, error: Exception) -> None:
        transactions = list(log.transactions)
        log.transactions.clear()
        log.open = None
        for transaction in transactions:
            _end(transaction, error)

    def _resign(self, log: Log) -> None:
        recovering, log.recovering = log.recovering, None
        if recovering is not None and recovering is not asyncio.current_task():
            recovering.cancel()
        log.transactions.clear()
        log.open = None
        log.fencing_token = ""
        log.in_flight = 0
        log.failure = None
        log.deadline = 0.0


def _end(transaction: AppendTransaction, error: Exception) -> None:
    if not transaction.stored.done():
        transaction.stored.fail(error)
    if not transaction.durable.done():
        transaction.durable.fail(error)
