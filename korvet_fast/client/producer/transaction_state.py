"""Where a producer's transaction is: states, and what may happen in each (KIP-98, KIP-360). No I/O, no clock."""

from enum import StrEnum
from typing import Final

from korvet_fast.client.producer.message import DeliveryFailed, Outcome
from korvet_fast.client.producer.transaction_refusals import TAKEN_OVER
from korvet_fast.client.protocol.metadata import TopicPartition


class TransactionError(DeliveryFailed):
    """A transaction cannot go on. `abort_transaction`, then begin again; unless it says otherwise."""


class ProducerFenced(TransactionError):
    """Another producer has begun with the same `transactional.id`: this one may write nothing more. Close it."""


class TransactionsUnavailable(TransactionError):
    """The broker has no transactions."""


class TransactionState(StrEnum):
    """The states."""

    NEW = "not initialised"
    READY = "without a transaction"
    OPEN = "in a transaction"
    FAILED = "in a transaction that has to be aborted"
    COMMITTING = "committing"
    ABORTING = "aborting"
    FENCED = "fenced"


S = TransactionState
# What a caller, a failure or the coordinator does -> from which state to which.
EVENTS: Final[dict[str, dict[TransactionState, TransactionState]]] = {
    "init": {S.NEW: S.READY},
    "begin": {S.READY: S.OPEN},
    "fail": {S.OPEN: S.FAILED, S.COMMITTING: S.FAILED, S.FAILED: S.FAILED},
    "commit": {S.OPEN: S.COMMITTING},
    "abort": {S.OPEN: S.ABORTING, S.FAILED: S.ABORTING},
    "end": {S.COMMITTING: S.READY, S.ABORTING: S.READY},
    # Nobody knows how it ended: only a new epoch makes sure that it has (Java: initTransactions again).
    "lose": {S.COMMITTING: S.NEW, S.ABORTING: S.NEW},
    "fence": dict.fromkeys(S, S.FENCED),
}
_ADVICE: Final = {
    S.NEW: "call init_transactions first",
    S.READY: "call begin_transaction first",
    S.OPEN: "commit or abort it first",
    S.FAILED: "call abort_transaction first",
    S.COMMITTING: "wait for the commit",
    S.ABORTING: "wait for the abort",
    S.FENCED: "close it",
}


class Transaction:
    """The state, and the partitions that the coordinator knows to be in the transaction.

    `wanted`: partitions with messages that the coordinator was not told of yet; `asked`: those it is being told of.
    """

    def __init__(self) -> None:
        self.state = TransactionState.NEW
        self.failure: Exception | None = None
        self.number = 0  # of those that were begun
        self.wanted: dict[TopicPartition, None] = {}
        self.asked: set[TopicPartition] = set()
        self._included: set[TopicPartition] = set()

    @property
    def is_empty(self) -> bool:
        """Whether the coordinator was told of no partition: then there is nothing to be ended there."""
        return not self._included and not self.asked

    def apply(self, event: str) -> None:
        """Change the state. Raises `TransactionError` for what cannot happen now."""
        after = EVENTS[event].get(self.state)
        if after is None:
            self.refuse(event)
            raise TransactionError(f"the producer is {self.state}: no {event} now; {_ADVICE[self.state]}")
        self.state = after
        if event in ("begin", "init"):
            self.failure = None
        self.number += event == "begin"
        if event in ("end", "lose", "init"):
            self.wanted.clear()
            self._included.clear()

    def check_open(self, number: int | None = None) -> None:
        """Raise `TransactionError` unless messages may be sent now, those of the transaction with this number."""
        if self.state is not TransactionState.OPEN:
            self.refuse("send")
            raise TransactionError(f"the producer is {self.state}: no send now; {_ADVICE[self.state]}")
        if number not in (None, self.number):
            raise TransactionError("the transaction in which the message was sent ended while it waited for memory")

    def refuse(self, what: str) -> None:
        """Raise the failure that ended the transaction, if one did."""
        if self.state is TransactionState.FENCED:
            raise ProducerFenced(f"no {what}: {TAKEN_OVER}")
        if self.state is TransactionState.FAILED:
            raise TransactionError(f"no {what}: the transaction failed ({self.failure}); abort it", cause=self.failure)

    def fail(self, error: Exception) -> None:
        """A message of the transaction failed, or the coordinator refused a partition."""
        if self.state in EVENTS["fail"]:
            self.failure = self.failure or error
            self.state = EVENTS["fail"][self.state]

    def fence(self) -> ProducerFenced:
        """Another producer took over: returns the error that says so."""
        self.state = TransactionState.FENCED
        return ProducerFenced(TAKEN_OVER)

    def includes(self, partition: TopicPartition) -> bool:
        """Whether messages may be sent to the partition. If not, the coordinator will be told of it."""
        if partition in self._included:
            return True
        if partition not in self.asked and self.state in (TransactionState.OPEN, TransactionState.COMMITTING):
            self.wanted[partition] = None
        return False

    def take_wanted(self) -> list[TopicPartition]:
        """The partitions that the coordinator is to be told of now; it is asked for all of them at once."""
        if self.asked or not self.wanted:
            return []
        found = list(self.wanted)
        self.wanted.clear()
        self.asked.update(found)
        return found

    def added(self) -> list[TopicPartition]:
        """The coordinator has taken those it was asked for."""
        found = list(self.asked)
        self._included.update(found)
        self.asked.clear()
        return found

    def unknown(self, what: str, error: Exception) -> TransactionError:
        """Nobody knows whether it was committed or aborted: returns the error that says so."""
        self.apply("lose")
        sentence = f"whether the {what} was carried out is not known ({error}); call init_transactions to go on"
        return TransactionError(sentence, Outcome.UNKNOWN, error)
