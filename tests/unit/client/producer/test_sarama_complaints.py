"""Complaints about Sarama's AsyncProducer: each complaint is a history in which ours keeps its promise.

The numbers are those of issues and pull requests at https://github.com/IBM/sarama.
"""

import tracemalloc
from itertools import pairwise

import pytest

from korvet_fast.client.producer.broker_producer import Connect, Disconnect
from korvet_fast.client.producer.message import BufferFull, DeliveryFailed, Expired, Outcome, ProducerClosed
from producer_cluster import SimulatedCluster
from producer_invariants import check
from producer_world import Fault, ProducerWorld

LONG = 600.0  # seconds of virtual time


def test_2619_2860_3422_3644_order_is_kept_under_retries() -> None:
    """Order was broken under retries, even with one request in flight."""
    for in_flight in (1, 5):
        for acks in ("1", "all"):
            world = ProducerWorld(acks=acks, max_in_flight_requests_per_connection=in_flight, batch_num_messages=1)
            world.faults.extend([Fault.NONE, Fault.TOO_FEW, Fault.NONE, Fault.DIES, Fault.TIMED_OUT, Fault.NOT_SENT])
            for _ in range(30):
                world.send(partition=0)
            world.run_until_ended(LONG)
            firsts = list(dict.fromkeys(world.log("t", 0)))  # without idempotence something may be there twice
            assert firsts == [each.values[0] for each in world.sent]
            check(world)


def test_3693_a_batch_behind_a_failed_one_is_not_sent_before_it() -> None:
    """A reorder window remained for errors of one partition: the next batch went out before the failed one again."""
    world = ProducerWorld(acks="1", batch_num_messages=1)
    world.faults.extend([Fault.TOO_FEW])
    for _ in range(5):
        world.send(partition=0)
    world.run_until_ended(LONG)
    assert world.log("t", 0) == [each.values[0] for each in world.sent]


@pytest.mark.parametrize("fault", list(Fault))
def test_3689_19446_no_failure_stalls_a_partition(fault: Fault) -> None:
    """A partition stayed muted for ever after a failure."""
    world = ProducerWorld(request_timeout_ms=500)
    world.faults.append(fault)
    first = world.send(partition=0)
    world.run_until_ended(LONG)
    assert first.outcome is not None
    later = [world.send(partition=0) for _ in range(10)]
    world.run_until_ended(LONG)
    assert {each.outcome for each in later} == {Outcome.DELIVERED}


def test_19735_a_send_can_be_cancelled() -> None:
    """Agents hung, and could not cancel a send."""
    world = ProducerWorld()
    world.cluster.leaders["t", 0] = None
    stuck = world.send(partition=0)
    world.run(5)
    assert world.pipeline.dispatcher.withdraw(stuck)
    world.pump()
    assert stuck.outcome is Outcome.NOT_WRITTEN
    world.heal()
    after = world.send(partition=0)
    world.run_until_ended(LONG)
    assert world.log("t", 0) == [after.values[0]]


def test_19735_what_was_sent_is_not_cancelled_but_told() -> None:
    world = ProducerWorld()
    world.send(partition=0)
    world.run_until_ended(LONG)  # connected now
    sent = world.send(partition=0)
    assert not world.pipeline.dispatcher.withdraw(sent)
    world.run_until_ended(LONG)
    assert sent.outcome is Outcome.DELIVERED


@pytest.mark.parametrize("fault", list(Fault))
def test_2155_1224_2121_close_ends_on_every_error_path(fault: Fault) -> None:
    """Close dead-locked when errors came at the same time."""
    world = ProducerWorld(delivery_timeout_ms=5000, request_timeout_ms=500, batch_num_messages=1)
    world.faults.extend([fault] * 1000)
    for _ in range(20):
        world.send(partition=0)
    world.pipeline.close()
    world.pump()
    world.run_until_ended(world.config.delivery_timeout + world.config.request_timeout)
    world.run(LONG)
    check(world)


def test_2175_2150_nothing_but_messages_is_produced() -> None:
    """A marker of the retry machine was produced as an empty record."""
    world = ProducerWorld(batch_num_messages=2)
    world.faults.extend([Fault.TOO_FEW, Fault.LOST, Fault.NONE] * 20)
    for number in range(60):
        world.send(partition=number % 3)
        world.run(0.05)
    world.run_until_ended(LONG)
    written = [value for index in range(3) for value in world.log("t", index)]
    assert sorted(written) == sorted(each.values[0] for each in world.sent)


def test_3354_every_batch_of_an_idempotent_producer_has_a_sequence_number() -> None:
    """Messages buffered during a retry were sent without one."""
    world = ProducerWorld(batch_num_messages=1)
    world.faults.extend([Fault.TOO_FEW, Fault.LOST] * 5)
    for _ in range(20):
        world.send(partition=0)
        world.run(0.01)
    world.run_until_ended(LONG)
    assert all(batch.sequence >= 0 for _, _, request in world.requests for _, batch in request.batches)
    check(world)


def test_1661_1430_retries_leave_no_gap_and_use_up_no_epoch() -> None:
    """Each failure took another epoch, until there was none left."""
    world = ProducerWorld(batch_num_messages=1)
    for _ in range(200):
        world.faults.append(Fault.TOO_FEW)
        world.send(partition=0)
        world.run(0.01)
    world.run_until_ended(LONG)
    epochs = {batch.data[51:53] for _, _, request in world.requests for _, batch in request.batches}
    assert len(epochs) == 1
    check(world)


def test_3557_after_the_last_epoch_another_producer_id_is_asked_for() -> None:
    cluster = SimulatedCluster()
    cluster.first_epoch = 32_767
    world = ProducerWorld(cluster=cluster)
    world.faults.append(Fault.UNEXPECTED)  # unknown outcome: the sequence is broken
    world.send(partition=0)
    world.run_until_ended(LONG)
    assert world.sent[0].outcome is Outcome.UNKNOWN
    world.send(partition=0)
    world.run_until_ended(LONG)
    assert cluster.producer_ids == 2
    assert world.sent[1].outcome is Outcome.DELIVERED
    check(world)


def test_2178_retries_wait_longer_and_longer() -> None:
    """Retries without a pause were used up in microseconds."""
    world = ProducerWorld(retries=6)
    world.faults.extend([Fault.TOO_FEW] * 100)
    world.send(partition=0)
    world.run_until_ended(LONG)
    times = [at for at, _, _ in world.requests]
    pauses = [after - before for before, after in pairwise(times)]
    assert len(pauses) == 6
    expected = [0.1, 0.2, 0.4, 0.8, 1.0, 1.0]
    assert all(0.8 * low <= pause <= 1.2 * low + 0.02 for pause, low in zip(pauses, expected, strict=True))
    assert world.sent[0].outcome is Outcome.NOT_WRITTEN


def test_1946_961_1755_no_breaker_opens_when_leaders_are_not_found() -> None:
    """After three failures to find a leader, messages failed at once for ten seconds."""
    world = ProducerWorld()
    world.cluster.hidden.add("t")
    world.control_fails = 5
    early = world.send()
    world.run(60)
    assert early.outcome is None
    asked = len(world.actions)
    assert asked < 60 / 0.8 + 20, "asked at most once a second after the first pauses"
    world.heal()
    world.run(1.2 + 4.0)
    assert early.outcome is Outcome.DELIVERED


def test_1358_1372_memory_is_bounded_during_an_outage_of_ten_minutes() -> None:
    """Messages that waited for a retry were kept without a bound."""
    world = ProducerWorld(buffer_memory=200_000, max_request_size=10_000)
    world.send(partition=0)
    world.run_until_ended(LONG)
    for node in range(3):
        world.kill(node)
    refused = 0
    for _ in range(200):
        for _ in range(20):
            try:
                world.send(size=100)
            except BufferFull:
                refused += 1
        world.run(3)  # `pump` checks the budget at every step
    assert refused > 1000
    world.heal()
    world.run_until_ended(LONG)
    check(world)


def test_1681_2930_a_huge_number_of_retries_takes_no_memory() -> None:
    """An array of as many retries was made for each partition."""
    tracemalloc.start()
    try:
        world = ProducerWorld(**{"Producer.Retry.Max": (1 << 31) - 1})
        before, _ = tracemalloc.get_traced_memory()
        for index in range(3):
            world.send(partition=index)
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert after - before < 200_000


def test_661_1919_3353_a_dead_broker_holds_up_no_other() -> None:
    """One dead broker blocked all topics at the input."""

    def delivered(broken: bool) -> int:
        world = ProducerWorld(buffer_memory=40_000, max_request_size=10_000)
        for index in range(3):
            world.send(partition=index)
        world.run_until_ended(LONG)
        if broken:
            world.kill(0)
        for number in range(900):
            try:
                world.send(partition=number % 3)
            except BufferFull:
                assert broken
                assert number % 3 == 0, "only what goes to the dead broker finds no memory"
            world.run(0.005)
        return sum(each.outcome is Outcome.DELIVERED for each in world.sent if each.partition)

    assert delivered(True) > 0.9 * delivered(False)


def test_1157_784_1017_close_delivers_all_that_was_accepted() -> None:
    """Fewer successes came than messages were sent."""
    world = ProducerWorld(linger_ms=1000)
    for _ in range(500):
        world.send()
    world.pipeline.close()
    world.pump()
    world.run_until_ended(LONG)
    assert world.pipeline.ledger.counts.delivered == 500
    check(world)


def test_2647_1441_sending_after_close_and_closing_twice_are_no_errors_of_the_program() -> None:
    """A send on a closed producer, or a second close, panicked."""
    world = ProducerWorld()
    world.send()
    world.pipeline.close()
    world.pipeline.close()
    with pytest.raises(ProducerClosed):
        world.send()
    world.run_until_ended(LONG)
    check(world)


def test_1824_each_message_has_a_deadline() -> None:
    world = ProducerWorld(delivery_timeout_ms=5000)
    world.cluster.leaders["t", 0] = None
    early = world.send(partition=0)
    world.run(3)
    late = world.send(partition=0)
    world.run(2.01)
    assert isinstance(early.error, Expired)
    assert isinstance(late.error, Expired), "nothing behind a gap is written"
    check(world)


def test_close_while_batches_wait_for_a_retry_still_delivers_them() -> None:
    """By reading: what waited for a retry at Close was delivered or failed at random."""
    world = ProducerWorld(batch_num_messages=1)
    world.faults.extend([Fault.TOO_FEW, Fault.LOST] * 3)
    for _ in range(20):
        world.send(partition=0)
    world.run(0.02)
    world.pipeline.close()
    world.pump()
    world.run_until_ended(LONG)
    assert world.pipeline.ledger.counts.delivered == 20
    check(world)


def test_a_leader_that_is_not_found_keeps_the_retries_of_a_message() -> None:
    """By reading: a message failed at once if the leader could not be found, whatever its retries."""
    world = ProducerWorld(retries=1)
    world.cluster.leaders["t", 0] = None
    waits = world.send(partition=0)
    world.run(30)
    assert waits.outcome is None
    world.heal()
    world.run_until_ended(LONG)
    assert waits.outcome is Outcome.DELIVERED


def test_a_duplicate_is_delivered_at_an_offset_that_nobody_knows_not_at_0() -> None:
    """Sarama gives such a message the offset 0, which is that of another one."""
    world = ProducerWorld()
    world.send(partition=0)
    world.run_until_ended(LONG)
    log = world.cluster.logs["t", 0]
    world.faults.append(Fault.DIES)
    world.send(partition=0)
    world.run(0.05)
    (known,) = log.producers.values()
    known.batches.clear()  # the broker knows that it has the batch, and not where
    known.next = 2
    world.cluster.answers_duplicates = True
    world.run_until_ended(LONG)
    assert (world.sent[1].outcome, world.sent[1].offset) == (Outcome.DELIVERED, -1)


def test_a_partition_left_out_of_an_answer_is_sent_again() -> None:
    """Sarama fails such messages, though nobody knows whether they are stored."""
    world = ProducerWorld()
    world.faults.append(Fault.MISSING)
    world.send(partition=0)
    world.run_until_ended(LONG)
    assert world.sent[0].outcome is Outcome.DELIVERED
    check(world)


def test_a_broker_that_leads_no_partition_any_more_is_left() -> None:
    """References: a broker that leads none of our partitions any more is left."""
    world = ProducerWorld()
    world.send(partition=0)
    world.run_until_ended(LONG)
    world.cluster.leaders["t", 0] = 1
    world.run(400)  # metadata is asked for again by then
    assert {each.broker for each in world.actions if isinstance(each, Connect)} == {world.cluster.addresses[0]}
    assert Disconnect(world.cluster.addresses[0]) in world.actions


def test_a_failure_in_the_queue_is_told_to_the_caller_at_once() -> None:
    world = ProducerWorld()
    world.send(partition=0)
    world.run_until_ended(LONG)
    with pytest.raises(DeliveryFailed, match="has no partition 9"):
        world.send(partition=9)
