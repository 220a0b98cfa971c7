"""Idempotence of a partition: the rules one by one, and all together against a model that remembers everything."""

import tracemalloc
from dataclasses import dataclass, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from korvet_fast.core.partition.producer_state import (
    KEPT,
    MOST,
    BatchMetadata,
    ProducerLimit,
    ProducerSequence,
    ProducerState,
)
from korvet_fast.errors import KorvetError

LAST = 2**31 - 1


@dataclass
class Batch:
    """The part of a batch that `ProducerState` reads."""

    base_sequence: int
    count: int = 1
    producer_epoch: int = 0
    producer_id: int = 1

    @property
    def last(self) -> int:
        return (self.base_sequence + self.count - 1) % (LAST + 1)

    @property
    def producer_sequence(self) -> ProducerSequence:
        return self.producer_id, self.producer_epoch, self.base_sequence, self.count


def unpack(packed: bytes) -> ProducerState:
    """The producers' states that these bytes hold."""
    producers = ProducerState()
    producers.load(packed, 0.0)
    return producers


def send(producers: ProducerState, batch: Batch, offset: int) -> int | str:
    """The offset answered, or the error's name."""
    try:
        stored = producers.check(batch.producer_sequence)
    except KorvetError as error:
        return error.error
    if stored is None:
        producers.add(batch.producer_sequence, offset, 1000 + offset, 0.0)
        return offset
    return stored.base_offset


def test_batches_in_sequence_are_stored_and_repetitions_keep_their_offset() -> None:
    producers = ProducerState()
    for number in range(KEPT):
        assert send(producers, Batch(number * 10, 10), 100 + number * 10) == 100 + number * 10
    for number in range(KEPT):
        assert send(producers, Batch(number * 10, 10), 999) == 100 + number * 10
    assert producers.check(Batch(0, 10).producer_sequence) == BatchMetadata(0, 9, 100, 109, 1100)


def test_batches_that_are_not_in_the_log_after_all_may_be_sent_again() -> None:
    producers = ProducerState()
    for number in range(4):
        send(producers, Batch(number), 10 + number)
    send(producers, Batch(0, producer_id=2), 14)
    producers.forget(12)
    assert send(producers, Batch(1), 99) == 11
    assert send(producers, Batch(3), 99) == "OUT_OF_ORDER_SEQUENCE_NUMBER"
    assert send(producers, Batch(2), 50) == 50
    assert send(producers, Batch(7, producer_id=2), 51) == 51  # nothing is known of it any more


def test_a_repetition_older_than_five_batches_is_known_but_not_its_offset() -> None:
    producers = ProducerState()
    for number in range(KEPT + 2):
        send(producers, Batch(number), number)
    assert send(producers, Batch(0), 99) == "DUPLICATE_SEQUENCE_NUMBER"
    assert send(producers, Batch(1), 99) == "DUPLICATE_SEQUENCE_NUMBER"
    assert send(producers, Batch(0, 2), 99) == "DUPLICATE_SEQUENCE_NUMBER"
    assert send(producers, Batch(2), 99) == 2


def test_what_was_never_stored_is_never_called_a_duplicate() -> None:
    producers = ProducerState()
    for number in range(100, 120):
        send(producers, Batch(number), number)
    assert send(producers, Batch(99), 0) == "OUT_OF_ORDER_SEQUENCE_NUMBER"
    assert send(producers, Batch(99, 3), 0) == "OUT_OF_ORDER_SEQUENCE_NUMBER"
    assert send(producers, Batch(100), 0) == "DUPLICATE_SEQUENCE_NUMBER"


@pytest.mark.parametrize("batch", [Batch(11), Batch(9), Batch(5, 5), Batch(0, 9), Batch(0, 11), Batch(LAST)])
def test_gaps_and_overlaps_are_out_of_order(batch: Batch) -> None:
    producers = ProducerState()
    send(producers, Batch(0, 10), 0)
    assert send(producers, batch, 10) == "OUT_OF_ORDER_SEQUENCE_NUMBER"


def test_sequences_wrap_to_zero_between_and_inside_batches() -> None:
    producers = ProducerState()
    assert send(producers, Batch(LAST - 1, 2), 0) == 0
    assert send(producers, Batch(0, 1), 2) == 2
    inside = ProducerState()
    assert send(inside, Batch(LAST, 3), 0) == 0
    assert send(inside, Batch(2), 3) == 3
    assert send(inside, Batch(LAST, 3), 9) == 0


def test_an_unknown_producer_may_begin_anywhere_and_a_new_epoch_only_at_zero() -> None:
    producers = ProducerState()
    assert send(producers, Batch(77), 0) == 0
    assert send(producers, Batch(78, producer_epoch=1), 1) == "OUT_OF_ORDER_SEQUENCE_NUMBER"
    assert send(producers, Batch(0, producer_epoch=1), 1) == 1
    assert send(producers, Batch(78), 2) == "INVALID_PRODUCER_EPOCH"
    assert send(producers, Batch(1, producer_epoch=1), 2) == 2


@pytest.mark.parametrize("batch", [Batch(-1), Batch(0, producer_epoch=-1)])
def test_a_producer_id_needs_epoch_and_sequence(batch: Batch) -> None:
    assert send(ProducerState(), batch, 0) == "INVALID_RECORD"


def test_silent_producers_are_forgotten() -> None:
    producers = ProducerState()
    producers.add(Batch(0, producer_id=1).producer_sequence, 0, 0, 10.0)
    producers.add(Batch(0, producer_id=2).producer_sequence, 1, 0, 20.0)
    producers.expire(15.0)
    assert len(producers) == 1
    assert send(producers, Batch(50, producer_id=1), 2) == 2
    assert send(producers, Batch(50, producer_id=2), 3) == "OUT_OF_ORDER_SEQUENCE_NUMBER"


def test_no_more_producers_are_known_than_the_limit() -> None:
    """Whoever names a new id with every batch displaces those silent longest, and never fills the memory."""
    producers = ProducerState()
    for number in range(MOST):
        producers.add(Batch(0, producer_id=number).producer_sequence, number, 0, float(number))
    producers.add(Batch(1, producer_id=0).producer_sequence, MOST, 0, float(MOST))
    producers.add(Batch(0, producer_id=MOST).producer_sequence, MOST + 1, 0, float(MOST))
    assert len(producers) == MOST
    assert send(producers, Batch(9, producer_id=0), -1) == "OUT_OF_ORDER_SEQUENCE_NUMBER"
    assert producers.check(Batch(9, producer_id=1).producer_sequence) is None
    producers.expire(float(MOST))
    assert len(producers) == 2


def test_a_producer_that_was_refused_is_known_by_what_follows_also_after_a_restart() -> None:
    producers = ProducerState()
    for number in range(10 + KEPT):
        send(producers, Batch(number), number)
    producers.forget(10)
    for known in (producers, unpack(producers.pack())):
        assert send(known, Batch(12), 99) == "OUT_OF_ORDER_SEQUENCE_NUMBER"
        assert send(known, Batch(9), 99) == "DUPLICATE_SEQUENCE_NUMBER"
        assert send(known, Batch(10), 10) == 10
        assert send(known, Batch(10), 99) == 10


def test_a_new_epoch_that_was_refused_begins_at_zero_once_more() -> None:
    producers = ProducerState()
    send(producers, Batch(0), 0)
    send(producers, Batch(0, producer_epoch=1), 1)
    producers.forget(1)
    assert send(producers, Batch(1, producer_epoch=1), 1) == "OUT_OF_ORDER_SEQUENCE_NUMBER"
    assert send(producers, Batch(1), 1) == "INVALID_PRODUCER_EPOCH"
    assert send(producers, Batch(0, producer_epoch=1), 1) == 1


def test_partitions_share_one_limit_and_those_who_sent_one_batch_are_forgotten_first() -> None:
    limit = ProducerLimit(80)
    one, other = ProducerState(limit), ProducerState(limit)
    for number in range(10):
        for sequence in range(2):
            send(one, Batch(sequence, producer_id=number), 10 * number + sequence)
    for number in range(1000):
        send(other, Batch(0, producer_id=number), number)
    assert (len(one), len(other), len(limit)) == (10, 70, 80)
    assert send(one, Batch(9, producer_id=0), 99) == "OUT_OF_ORDER_SEQUENCE_NUMBER"
    assert send(other, Batch(9, producer_id=999), 99) == "OUT_OF_ORDER_SEQUENCE_NUMBER"
    other.clear()
    assert (len(other), len(limit)) == (0, 10)


def test_who_keeps_something_of_producers_is_told_of_those_forgotten_and_of_no_others() -> None:
    told: list[tuple[str, int]] = []
    limit = ProducerLimit(3, lambda log, producer: told.append((log, producer)))
    one, other = ProducerState(limit, "t:0"), ProducerState(limit, "t:1")
    for number in range(3):
        one.add(Batch(0, producer_id=number).producer_sequence, number, 0, float(number))
    other.add(Batch(0, producer_id=9).producer_sequence, 0, 0, 9.0)
    assert told == [("t:0", 0)]
    one.expire(2.0)
    assert told == [("t:0", 0), ("t:0", 1)]
    one.forget(0)  # its batch is not in the log after all
    other.load(other.pack(), 9.0)
    other.clear()  # the log is led here no more
    assert len(told) == 2
    assert len(limit) == 0


def test_ids_that_send_twice_displace_those_silent_longest_and_leave_room_for_newcomers() -> None:
    limit = ProducerLimit(80)
    producers = ProducerState(limit)
    send(producers, Batch(0, producer_id=5000), 0)
    for number in range(1000):
        for sequence in range(2):
            send(producers, Batch(sequence, producer_id=number), 10 * number + sequence)
        send(producers, Batch(number + 1, producer_id=5000), 10 * number + 5)
    send(producers, Batch(0, producer_id=6000), 20_000)
    for number in range(9):  # the newcomer stays while fewer than an eighth of all come after it
        send(producers, Batch(0, producer_id=7000 + number), 20_001 + number)
    assert len(limit) == 80
    assert send(producers, Batch(7, producer_id=6000), 99) == "OUT_OF_ORDER_SEQUENCE_NUMBER"
    assert send(producers, Batch(7, producer_id=5000), 99) == "DUPLICATE_SEQUENCE_NUMBER"


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(1, 9)), max_size=60))
def test_what_is_packed_is_unpacked(sent: list[tuple[int, int]]) -> None:
    producers, following, offset = ProducerState(), [LAST - 5, 0, 0, 0], 0
    for number, count in sent:
        assert send(producers, Batch(following[number], count, producer_id=number), offset) == offset
        following[number] = (following[number] + count) % (LAST + 1)
        offset += count
    assert unpack(producers.pack()).pack() == producers.pack()


class Model(RuleBasedStateMachine):
    """Two producers send, resend, skip, renew their epochs and lose their partition's memory to a restart."""

    def __init__(self) -> None:
        super().__init__()
        self.producers = ProducerState()
        self.log: list[tuple[Batch, int]] = []
        self.end = 0

    def sent_by(self, producer_id: int) -> list[tuple[Batch, int]]:
        """The batches stored under the producer's latest epoch, in order."""
        mine = [(batch, offset) for batch, offset in self.log if batch.producer_id == producer_id]
        return [(batch, offset) for batch, offset in mine if batch.producer_epoch == mine[-1][0].producer_epoch]

    def deliver(self, batch: Batch) -> int | str:
        answer = send(self.producers, batch, self.end)
        if answer == self.end:
            self.log.append((batch, self.end))
            self.end += batch.count
        return answer

    @rule(producer_id=st.integers(1, 2), count=st.integers(1, 4), first=st.sampled_from([0, 7, LAST - 2]))
    def send_next(self, producer_id: int, count: int, first: int) -> None:
        mine = self.sent_by(producer_id)
        begin = (mine[-1][0].last + 1) % (LAST + 1) if mine else first
        epoch = mine[-1][0].producer_epoch if mine else 0
        expected = self.end
        assert self.deliver(Batch(begin, count, epoch, producer_id)) == expected

    @precondition(lambda self: self.log)
    @rule(data=st.data())
    def resend(self, data: st.DataObject) -> None:
        batch, offset = data.draw(st.sampled_from(self.log))
        mine = self.sent_by(batch.producer_id)
        if batch.producer_epoch < mine[-1][0].producer_epoch:
            expected: int | str = "INVALID_PRODUCER_EPOCH"
        elif (batch, offset) in mine[-KEPT:]:
            expected = offset
        else:
            expected = "DUPLICATE_SEQUENCE_NUMBER"
        assert self.deliver(batch) == expected

    @precondition(lambda self: self.log)
    @rule(data=st.data(), skipped=st.integers(1, 100))
    def skip(self, data: st.DataObject, skipped: int) -> None:
        last = self.sent_by(data.draw(st.sampled_from(self.log))[0].producer_id)[-1][0]
        ahead = Batch((last.last + 1 + skipped) % (LAST + 1), 1, last.producer_epoch, last.producer_id)
        assert self.deliver(ahead) == "OUT_OF_ORDER_SEQUENCE_NUMBER"

    @precondition(lambda self: self.log)
    @rule(data=st.data(), count=st.integers(1, 3))
    def renew(self, data: st.DataObject, count: int) -> None:
        last = self.sent_by(data.draw(st.sampled_from(self.log))[0].producer_id)[-1][0]
        expected = self.end
        assert self.deliver(Batch(0, count, last.producer_epoch + 1, last.producer_id)) == expected

    @precondition(lambda self: self.log)
    @rule(data=st.data(), many=st.integers(1, KEPT))
    def refuse(self, data: st.DataObject, many: int) -> None:
        """Batches that the store refuses after they were taken in: the first of them is next, and no other."""
        last = self.sent_by(data.draw(st.sampled_from(self.log))[0].producer_id)[-1][0]
        ahead = [replace(last, base_sequence=(last.last + 1 + each) % (LAST + 1), count=1) for each in range(many)]
        for each, batch in enumerate(ahead):
            self.producers.add(batch.producer_sequence, self.end + each, 0, 0.0)
        self.producers.forget(self.end)
        for batch in ahead[1:]:
            assert self.deliver(batch) == "OUT_OF_ORDER_SEQUENCE_NUMBER"
        self.restart(len(self.log))

    @rule(saved_at=st.integers(0, 20))
    def restart(self, saved_at: int) -> None:
        """A snapshot from any moment and the batches after it give the same state."""
        before = ProducerState()
        for batch, offset in self.log[:saved_at]:
            before.add(batch.producer_sequence, offset, 1000 + offset, 0.0)
        self.producers = unpack(before.pack())
        for batch, offset in self.log[saved_at:]:
            self.producers.add(batch.producer_sequence, offset, 1000 + offset, 0.0)

    @invariant()
    def nothing_is_stored_twice(self) -> None:
        seen = [(batch.producer_id, batch.producer_epoch, batch.base_sequence) for batch, _ in self.log]
        assert len(seen) == len(set(seen))


TestModel = Model.TestCase


def test_the_room_of_forgotten_producers_is_given_back_and_the_others_keep_their_order() -> None:
    many = 20_000
    limit = ProducerLimit(many)
    producers = ProducerState(limit)
    tracemalloc.start()
    try:
        for number in range(many):
            producers.add((number, 0, 0, 1), number, 0, float(number))
        full, _ = tracemalloc.get_traced_memory()
        producers.expire(many - 10.0)
        left, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(producers) == len(limit) == 10
    assert left < full / 20
    limit.most = 5
    send(producers, Batch(0, producer_id=many), many)
    assert len(producers) == 5
    assert send(producers, Batch(9, producer_id=many - 4), many + 1) == "OUT_OF_ORDER_SEQUENCE_NUMBER"
    assert send(producers, Batch(9, producer_id=many - 5), many + 1) == many + 1
