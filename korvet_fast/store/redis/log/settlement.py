"""Settling appends: who waits is told what is in the log, then what is durable, in the order of the log."""

import asyncio
from functools import partial

from korvet_fast.errors import OutcomeUnknown, StoreError, TooFewCopies
from korvet_fast.store.redis.durability.sync import Durability
from korvet_fast.store.redis.log.log import Log
from korvet_fast.store.redis.log.producer_headers import drop_forgotten
from korvet_fast.store.redis.stream.transaction import AppendTransaction

PRODUCERS = 20_000  # producers of one log whose headers are kept


class Settlement:
    """Ends the futures of appends that Redis has carried out."""

    def __init__(self, durability: Durability) -> None:
        self._durability = durability
        self._loop = asyncio.get_running_loop()

    def settle(self, log: Log, transaction: AppendTransaction) -> None:
        """Settle a transaction in the log, the first of those whose outcome is open, and the empty ones behind it."""
        self._settle_one(log, transaction)
        while log.transactions and not log.transactions[0].batches:
            self._settle_one(log, log.transactions.pop(0))

    def _settle_one(self, log: Log, transaction: AppendTransaction) -> None:
        if transaction.batches:
            log.end_field = transaction.end_field
            log.totals = transaction.totals
            log.deadline = 0.0
            for row in transaction.rows:
                log.segments.grow(row, transaction.limit)
            drop_forgotten(log, transaction.forgotten)
            if transaction.headers:
                self._keep_headers(log, transaction)
        in_task = asyncio.current_task(self._loop) is not None
        if in_task:  # as in a recovery: who waits cannot go on before the task gives way
            transaction.stored.set_result(None)
        if transaction.durable is not transaction.stored:
            self._make_durable(log, transaction)
        elif transaction.end > log.durable:
            log.durable = transaction.end
        if not in_task:
            transaction.stored.end(None)  # last: who is told may append at once

    def _keep_headers(self, log: Log, transaction: AppendTransaction) -> None:
        for producer, headers in transaction.headers.items():
            log.headers[producer] = headers
            log.headers.move_to_end(producer)
            log.forgotten.pop(producer, None)  # it was forgotten while this was on its way
        while len(log.headers) > PRODUCERS:
            log.forgotten[log.headers.popitem(last=False)[0]] = None

    def _make_durable(self, log: Log, transaction: AppendTransaction) -> None:
        log.awaiting_durable.append(transaction)
        round_ = None
        if transaction.waits:
            try:
                round_ = self._durability.wait(log.key, *transaction.need)
            except StoreError as error:
                transaction.durability_error = TooFewCopies(error.detail)  # the transaction is stored
        if round_ is None:
            transaction.kept = True
            self._tell_durable(log)
        else:
            round_.add_done_callback(partial(self._end_round, log, transaction))

    def _end_round(self, log: Log, transaction: AppendTransaction, round_: "asyncio.Future[None]") -> None:
        error = round_.exception()
        transaction.kept = True
        if error is not None:
            why = error.detail if isinstance(error, StoreError) else repr(error)
            transaction.durability_error = error if isinstance(error, OutcomeUnknown) else OutcomeUnknown(why)
        self._tell_durable(log)

    def _tell_durable(self, log: Log) -> None:
        """End the `durable` futures of transactions that are kept, in the order of the log."""
        while log.awaiting_durable and log.awaiting_durable[0].kept:
            transaction = log.awaiting_durable.pop(0)
            if transaction.durable.done():
                continue
            if transaction.durability_error is not None:
                transaction.durable.fail(transaction.durability_error)
            else:
                log.durable = max(log.durable, transaction.end)
                transaction.durable.set_result(None)
