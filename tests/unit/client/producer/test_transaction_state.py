"""The states of a transaction: each event in each state, and which partitions the coordinator is told of."""

import pytest

from korvet_fast.client.producer import Outcome, ProducerFenced, TransactionError
from korvet_fast.client.producer.transaction_state import EVENTS, Transaction, TransactionState

S = TransactionState
FIRST = ("orders", 0)
SECOND = ("orders", 1)


def transaction(state: TransactionState = S.OPEN) -> Transaction:
    made = Transaction()
    made.state = state
    return made


@pytest.mark.parametrize("event", EVENTS)
@pytest.mark.parametrize("state", S)
def test_each_event_in_each_state(state: TransactionState, event: str) -> None:
    made = transaction(state)
    after = EVENTS[event].get(state)
    if after is not None:
        made.apply(event)
        assert made.state is after
        return
    with pytest.raises(TransactionError) as caught:
        made.apply(event)
    assert made.state is state
    assert isinstance(caught.value, ProducerFenced) is (state is S.FENCED)


@pytest.mark.parametrize("state", S)
def test_messages_are_sent_in_an_open_transaction_only(state: TransactionState) -> None:
    made = transaction(state)
    if state is S.OPEN:
        made.check_open()
        return
    with pytest.raises(TransactionError):
        made.check_open()


def test_the_coordinator_is_told_of_a_partition_once_and_of_those_that_come_meanwhile_next() -> None:
    made = transaction()
    assert made.is_empty
    assert not made.includes(FIRST)
    assert not made.includes(FIRST)
    assert made.take_wanted() == [FIRST]
    assert not made.is_empty, "it may have been told"
    assert not made.includes(FIRST)
    assert not made.includes(SECOND)
    assert made.take_wanted() == []
    assert made.added() == [FIRST]
    assert made.includes(FIRST)
    assert made.take_wanted() == [SECOND]
    made.added()
    made.apply("commit")
    assert made.includes(SECOND)
    made.apply("end")
    assert made.is_empty
    made.apply("begin")
    assert not made.includes(FIRST), "each transaction has its own"


def test_nothing_new_is_added_while_it_is_aborted() -> None:
    made = transaction(S.ABORTING)
    assert not made.includes(FIRST)
    assert made.take_wanted() == []


def test_the_first_failure_is_the_one_that_is_told() -> None:
    made = transaction()
    made.fail(ValueError("first"))
    made.fail(ValueError("second"))
    with pytest.raises(TransactionError, match=r"no commit: the transaction failed \(first\); abort it"):
        made.apply("commit")
    made.apply("abort")
    made.apply("end")
    made.apply("begin")
    made.check_open()


def test_a_failure_after_the_end_changes_nothing() -> None:
    made = transaction(S.READY)
    made.fail(ValueError("late"))
    assert made.state is S.READY


def test_an_unknown_end_needs_a_new_beginning() -> None:
    made = transaction(S.COMMITTING)
    error = made.unknown("commit", ValueError("no answer"))
    assert error.outcome is Outcome.UNKNOWN
    with pytest.raises(TransactionError, match="call init_transactions first"):
        made.apply("begin")
    made.apply("init")
    made.apply("begin")


def test_who_is_fenced_stays_fenced() -> None:
    made = transaction()
    assert isinstance(made.fence(), ProducerFenced)
    made.fail(ValueError("late"))
    for event in ("begin", "commit", "abort", "init"):
        with pytest.raises(ProducerFenced, match=f"no {event}: another producer has begun with this transactional.id"):
            made.apply(event)
