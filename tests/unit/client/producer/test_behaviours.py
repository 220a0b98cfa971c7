"""Single behaviours of the producer's stages, each in the shortest history that shows it."""

from contextlib import suppress
from typing import Any

import pytest

from korvet_fast._native import ColumnRows
from korvet_fast.client.producer.broker_producer import Connect
from korvet_fast.client.producer.hashing import murmur2_hash
from korvet_fast.client.producer.memory_budget import MemoryBudget
from korvet_fast.client.producer.message import (
    BufferFull,
    DeliveryFailed,
    Expired,
    Message,
    Outcome,
    QueuedRecords,
    encoded_size,
)
from korvet_fast.client.producer.record_batch import encode
from korvet_fast.client.producer.rows import Column, QueuedRows
from korvet_fast.client.protocol.errors import BrokerError
from korvet_fast.errors import Errors
from producer_cluster import SimulatedCluster
from producer_invariants import check
from producer_world import Fault, ProducerWorld

LONG = 600.0


def warm(**settings: Any) -> ProducerWorld:
    """A world whose producer is connected to the leader of partition 0."""
    world = ProducerWorld(**settings)
    world.send(partition=0)
    world.run_until_ended(LONG)
    world.requests.clear()
    return world


@pytest.mark.parametrize("value", [None, b"", b"x", b"x" * 63, b"x" * 64, b"x" * 9000])
@pytest.mark.parametrize("key", [None, b"", b"k" * 100])
@pytest.mark.parametrize("headers", [[], [("a", None), ("é" * 40, b"v" * 70)]])
def test_the_size_that_is_checked_is_that_of_the_batch(value: Any, key: Any, headers: Any) -> None:
    records = QueuedRecords("t", (value,), None if key is None else (key,), headers, 0, 1_700_000_000_000)
    size = len(encode([records], 0, (-1, -1), -1))
    assert encoded_size(value, key, headers) == size
    assert size <= records.size + 61


def test_five_batches_of_a_partition_are_on_their_way_once_one_is_stored() -> None:
    world = warm(batch_num_messages=1)
    for _ in range(9):
        world.send(partition=0)
    assert len(world.requests) == 5
    world.run_until_ended(LONG)
    check(world)


def test_one_batch_is_on_its_way_without_idempotence() -> None:
    world = warm(acks="1", batch_num_messages=1)
    for _ in range(9):
        world.send(partition=0)
    assert len(world.requests) == 1


def test_the_first_batch_of_a_partition_goes_alone() -> None:
    """A broker accepts any first sequence of a producer it does not know: the second batch must not come first."""
    world = ProducerWorld(batch_num_messages=1)
    for _ in range(9):
        world.send(partition=0)
    while not world.requests:
        world.run(0.001)
    assert [len(request.batches) for _, _, request in world.requests] == [1]


def test_a_new_leader_gets_nothing_while_the_old_one_owes_an_answer() -> None:
    world = warm(request_timeout_ms=2000, metadata_max_age_ms=300)
    world.faults.append(Fault.SILENT)
    world.send(partition=0)
    world.cluster.leaders["t", 0] = 1
    world.send(partition=0)
    world.run(1.5)
    assert {address.host for _, address, _ in world.requests} == {"node0"}
    world.run_until_ended(LONG)
    assert world.requests[-1][1].host == "node1"
    check(world)


def test_out_of_order_at_the_head_stops_the_partition_with_its_reason() -> None:
    world = warm()
    (known,) = world.cluster.logs["t", 0].producers.values()
    known.next = 77  # the broker has lost what it acknowledged, or stored what we did not send
    lost, behind = world.send(partition=0), world.send(partition=0)
    world.run_until_ended(LONG)
    assert (lost.outcome, behind.outcome) == (Outcome.NOT_WRITTEN, Outcome.NOT_WRITTEN)
    assert "OUT_OF_ORDER_SEQUENCE_NUMBER" in str(lost.error)
    after = world.send(partition=0)  # in the next epoch
    world.run_until_ended(LONG)
    assert after.outcome is Outcome.DELIVERED


def test_stop_takes_nothing_more_until_it_is_resumed() -> None:
    world = warm(on_failure="stop")
    world.faults.append(Fault.INVALID)
    world.send(partition=0)
    world.run_until_ended(LONG)
    with pytest.raises(DeliveryFailed, match="takes no messages since one failed"):
        world.send(partition=0)
    assert world.send(partition=1).outcome is None, "other partitions go on"
    world.pipeline.dispatcher.topic("t").stopped.clear()
    world.send(partition=0)
    world.run_until_ended(LONG)
    assert [each.outcome for each in world.sent] == [
        Outcome.DELIVERED,
        Outcome.NOT_WRITTEN,
        Outcome.DELIVERED,
        Outcome.DELIVERED,
    ]


def test_continue_fails_one_batch_and_writes_those_behind_it() -> None:
    world = warm(on_failure="continue", batch_num_messages=1)
    world.faults.append(Fault.INVALID)
    for _ in range(8):
        world.send(partition=0)
    world.run_until_ended(LONG)
    assert [each.outcome for each in world.sent].count(Outcome.NOT_WRITTEN) == 1
    check(world)


def test_a_batch_that_is_too_large_is_halved_until_it_fits() -> None:
    world = warm()
    world.cluster.max_batch = 250
    for _ in range(40):
        world.send(partition=0, size=20)
    world.run_until_ended(LONG)
    assert world.pipeline.ledger.counts.delivered == 41
    check(world)


def test_a_single_message_that_is_too_large_for_the_broker_fails() -> None:
    world = warm(on_failure="continue")
    world.cluster.max_batch = 250
    sent = [world.send(partition=0, size=size) for size in (20, 500, 20)]
    world.run_until_ended(LONG)
    assert [each.outcome for each in sent] == [Outcome.DELIVERED, Outcome.NOT_WRITTEN, Outcome.DELIVERED]
    assert "MESSAGE_TOO_LARGE" in str(sent[1].error)
    check(world)


def test_rows_that_are_too_large_together_are_halved_too() -> None:
    world = warm()
    world.cluster.max_batch = 300
    column = Column("t", 50)
    values = [b"row %d" % row for row in range(50)]
    (run,) = ColumnRows(None, values).runs(None, 1 << 20, 100)
    rows = QueuedRows(column, run, "t", 0, 1)
    world.pipeline.dispatcher.enqueue(rows, world.now, wait=False)
    world.pump()
    world.run_until_ended(LONG)
    for each in world.ended[1:]:
        assert isinstance(each, QueuedRows)
        column.end(each.rows, each)
    assert column.result().offsets == list(range(1, 51))
    assert world.log("t", 0)[1:] == values
    assert world.pipeline.ledger.memory.empty


def test_linger_waits_and_flush_does_not() -> None:
    world = warm(linger_ms=1000)
    world.send(partition=0)
    world.run(0.9)
    assert not world.requests
    number = world.pipeline.flush()
    world.pump()
    assert len(world.requests) == 1
    assert not world.pipeline.ledger.is_flushed(number)
    world.run(0.1)
    assert world.pipeline.ledger.is_flushed(number)
    later = world.send(partition=0)
    world.run(0.99)
    assert later.outcome is None
    world.run(0.1)
    assert later.outcome is Outcome.DELIVERED


@pytest.mark.parametrize("trigger", [{"flush_messages": 3}, {"flush_bytes": 110}, {"batch_size": 110}])
def test_a_trigger_ends_the_linger(trigger: dict[str, int]) -> None:
    world = warm(linger_ms=1000, **trigger)
    for _ in range(2):
        world.send(partition=0)
    assert not world.requests
    world.send(partition=0)
    assert len(world.requests) == 1


def test_messages_that_wait_for_memory_keep_their_order_and_give_up_in_time() -> None:
    world = warm(buffer_memory=8000, max_request_size=1000, max_block_ms=5000)
    world.kill(0)
    with pytest.raises(BufferFull):
        for _ in range(100):
            world.send(partition=0, wait=True)
    waiting = [each for each in world.sent if each.state == "waiting for memory"]
    assert waiting
    assert world.pipeline.metrics(world.now).waiting_for_memory == len(waiting)
    world.run(4.9)
    assert {each.outcome for each in waiting} == {None}
    world.run(0.2)
    assert {type(each.error) for each in waiting} == {BufferFull}
    world.heal()
    world.run_until_ended(LONG)
    check(world)


def test_no_destination_takes_all_memory_and_many_leave_some() -> None:
    budget = MemoryBudget(10_000)
    for destination in ("a", "b", "c"):
        while budget.take(destination, 100):
            pass
    assert budget.take("d", 100)
    assert budget.used <= budget.total


def test_a_throttled_broker_gets_nothing_meanwhile() -> None:
    world = warm(batch_num_messages=1, max_in_flight_requests_per_connection=1)
    world.faults.append(Fault.THROTTLED)
    world.send(partition=0)
    world.send(partition=0)
    world.run(0.4)
    assert len(world.requests) == 1
    world.run(0.2)
    assert len(world.requests) == 2


def test_a_broker_that_is_away_is_asked_with_growing_pauses() -> None:
    world = ProducerWorld()
    world.kill(0)
    world.send(partition=0)
    world.run(100)
    tries = sum(isinstance(each, Connect) for each in world.actions)
    assert 100 / 1.25 < tries < 100 / 0.8 + 6


def test_a_topic_that_is_not_allowed_fails_at_once() -> None:
    world = ProducerWorld()
    world.cluster.refused.add("secret")
    refused = world.send("secret")
    world.run(1)
    assert refused.outcome is Outcome.NOT_WRITTEN
    assert "secret" in str(refused.error)
    assert "secret" not in world.pipeline.dispatcher.topics


def expire_one(world: ProducerWorld, *, named: bool = True) -> DeliveryFailed:
    """The error of a message that is not delivered."""
    message = world.send(partition=0 if named else -1)
    world.run_until_ended(LONG)
    assert isinstance(message.error, Expired)
    return message.error


def test_a_message_that_expires_says_why_the_broker_refused_it_last() -> None:
    world = warm(delivery_timeout_ms=5000)
    world.faults.extend([Fault.TOO_FEW] * 1000)
    error = expire_one(world)
    assert str(error).startswith("partition 0 of topic 't': not delivered within delivery.timeout.ms (5 s); the last")
    assert str(error).endswith("(NOT_ENOUGH_REPLICAS)")
    assert isinstance(error.cause, BrokerError)
    assert error.cause.error is Errors.NOT_ENOUGH_REPLICAS
    assert str(expire_one(world)) == str(error), "it was queued behind, and had attempts of its own"


def test_a_message_that_expires_says_that_its_broker_cannot_be_reached() -> None:
    world = warm(delivery_timeout_ms=5000)
    world.kill(0)
    error = expire_one(world)
    assert str(error).endswith("(5 s); the last error was: node0:9092 refuses")
    assert str(error.cause) == "node0:9092 refuses"


def test_a_message_that_expires_says_why_there_is_no_producer_id(monkeypatch: pytest.MonkeyPatch) -> None:
    refusal = {"error_code": 56, "producer_id": -1, "producer_epoch": -1}
    monkeypatch.setattr(SimulatedCluster, "init_producer_id", lambda _: refusal)
    error = expire_one(ProducerWorld(delivery_timeout_ms=5000))
    assert "(5 s); the last error was: a broker refused a producer id: " in str(error)
    assert str(error).endswith("(KAFKA_STORAGE_ERROR)")


def test_a_message_that_expires_says_why_the_partitions_of_its_topic_are_unknown() -> None:
    world = ProducerWorld(delivery_timeout_ms=5000)
    world.cluster.hidden.add("t")
    error = expire_one(world, named=False)
    assert str(error).startswith("the partitions of topic 't' were not found within delivery.timeout.ms (5 s); ")
    assert str(error).endswith("(UNKNOWN_TOPIC_OR_PARTITION)")
    world.control_fails = 1000
    assert str(expire_one(world, named=False)).endswith("(5 s); the last error was: no answer")


def test_a_message_that_expires_has_forgotten_errors_before_the_last_success() -> None:
    world = warm(delivery_timeout_ms=5000)
    world.faults.append(Fault.TOO_FEW)
    world.send(partition=0)
    world.run_until_ended(LONG)
    assert world.ended[-1].outcome is Outcome.DELIVERED
    world.cluster.leaders["t", 0] = None
    world.pipeline.metadata_received(world.cluster.metadata(["t"]), world.now)
    error = expire_one(world)
    assert str(error).endswith("(5 s); the last error was: no broker is known to lead it")
    assert str(error.cause) == "no broker is known to lead it"


@pytest.mark.parametrize("keyed", [False, True], ids=["partitions are named", "keys"])
def test_a_broker_that_stands_still_costs_the_others_less_than_a_tenth(keyed: bool) -> None:
    """P11: everybody sends as much as there is memory for, for ten seconds of the virtual clock."""
    still, moving = _deliver(keyed, stalled=True), _deliver(keyed, stalled=False)
    assert still[0] < moving[0] / 10, "it does stand still"
    for index in (1, 2):
        assert still[index] > 0.9 * moving[index] > 1000


def _deliver(keyed: bool, stalled: bool) -> list[int]:
    """Messages stored of each partition; that of the first broker takes requests, and may answer none."""
    world = ProducerWorld(buffer_memory=400_000, max_request_size=10_000, batch_size=5_000, partitioner="murmur2")
    keys = [next(k for n in range(99) if murmur2_hash(k := b"%d" % n, 3) == index) for index in range(3)]
    for index in range(3):
        world.send(partition=index)
    world.run(1)
    if stalled:
        world.down.add(0)
    for _ in range(1000):
        for index in range(3):
            for _ in range(10):
                message = Message("t", b"%d-%d" % (index, len(world.sent)), keys[index] if keyed else None)
                with suppress(BufferFull):
                    named = message if keyed else message._replace(partition=index)
                    world.sent.append(world.messages.send(named, world.now, wait=False))
        world.run(0.01)
    return [len(world.log("t", index)) for index in range(3)]
