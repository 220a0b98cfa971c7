"""Topics without messages are forgotten after `metadata.max.idle.ms` (KIP-526); those that return go on as before."""

from collections.abc import Callable
from random import Random

import pytest

from korvet_fast.client.producer import idle_topics
from korvet_fast.client.producer.broker_producer import Connect, Disconnect, Produce
from korvet_fast.client.producer.config import read_config
from korvet_fast.client.producer.dialects import LEGACY
from korvet_fast.client.producer.message import DeliveryFailed, Outcome, QueuedRecords
from korvet_fast.client.producer.pipeline import FetchMetadata, Pipeline
from korvet_fast.client.producer.producer_identity import LAST_EPOCH
from korvet_fast.endpoint import Address
from producer_cluster import Log
from producer_invariants import check, check_accounts
from producer_transactions_world import TransactionWorld
from producer_world import Fault, ProducerWorld

LONG = 600.0  # seconds of virtual time
IDLE = 300.0 + 300.0 + 10.0  # metadata.max.idle.ms, and what may pass until metadata is asked for again


def last_asked(world: ProducerWorld) -> list[str]:
    return [each.topics for each in world.actions if isinstance(each, FetchMetadata)][-1]


def send_and_leave(world: ProducerWorld, seconds: float = IDLE) -> None:
    """Send to the topic t, then only to u for a while."""
    for index in range(3):
        world.send("t", partition=index)
    world.run_until_ended(LONG)
    for _ in range(int(seconds / 10)):
        world.send("u", partition=1)
        world.run(10)


def test_an_idle_topic_is_not_asked_for_any_more() -> None:
    world = ProducerWorld()
    send_and_leave(world)
    assert last_asked(world) == ["u"]
    assert list(world.pipeline.dispatcher.topics) == ["u"]
    assert {place[0] for place in world.pipeline.brokers._metadata._leaders} == {"u"}


def test_brokers_that_lead_idle_topics_only_are_left() -> None:
    world = ProducerWorld()
    send_and_leave(world)
    assert {each.broker for each in world.actions if isinstance(each, Connect)} == set(world.cluster.addresses)
    left = {each.broker for each in world.actions if isinstance(each, Disconnect)}
    assert left == {world.cluster.addresses[0], world.cluster.addresses[2]}


def test_topics_are_forgotten_also_where_nobody_is_asked_for_metadata() -> None:
    """Those of `legacy://` and `text://` were kept for ever."""
    broker = Address("only", 9092)
    pipeline = Pipeline(read_config({}, LEGACY), Random(0), broker)
    for number in range(100):
        now = 10.0 * number
        pipeline.dispatcher.enqueue(QueuedRecords(f"t-{number}", (b"x",), None, (), -1, 1), now, wait=False)
        actions = pipeline.poll(now)
        if isinstance(actions[0], Connect):
            pipeline.connected(broker, now)
            actions = pipeline.poll(now)
        (produce,) = actions
        assert isinstance(produce, Produce)
        pipeline.answered(broker, produce.request, None, now)
    assert len(pipeline.dispatcher.topics) <= 60
    (stage,) = pipeline.brokers
    assert stage.references == len(pipeline.dispatcher.topics)
    assert pipeline.ledger.counts.delivered == 100


def test_a_topic_in_use_is_not_forgotten() -> None:
    world = ProducerWorld(metadata_max_idle_ms=60_000, metadata_max_age_ms=20_000)
    for _ in range(20):
        world.send("t", partition=0)
        world.run(50)
        assert list(world.pipeline.dispatcher.topics) == ["t"]
    assert last_asked(world) == ["t"]


def test_a_topic_that_returns_goes_on_with_its_sequence_numbers() -> None:
    world = ProducerWorld()
    send_and_leave(world)
    back = [world.send("t", partition=index) for index in (0, 0, 1, 2)]
    world.run_until_ended(LONG)
    assert {each.outcome for each in back} == {Outcome.DELIVERED}
    sequences = [
        batch.sequence for _, _, request in world.requests for place, batch in request.batches if place.topic == "t"
    ]
    assert sorted(sequences)[3:], "more than the first of each partition"
    assert sequences.count(0) == 3, "none begins anew"
    check(world)


def test_without_sequence_numbers_nothing_is_kept_of_a_topic() -> None:
    world = ProducerWorld(acks="1")
    send_and_leave(world)
    assert list(world.pipeline.dispatcher.topics) == ["u"]
    assert world.pipeline._idle_topics.sequences == {}


def test_a_topic_that_returns_has_the_partitions_of_now() -> None:
    world = ProducerWorld()
    send_and_leave(world)
    for index in range(3, 6):
        world.cluster.leaders["t", index] = 0
        world.cluster.logs["t", index] = Log()
    back = [world.send("t", key=b"key-%d" % number) for number in range(40)]
    world.run_until_ended(LONG)
    assert {each.partition for each in back} == set(range(6))


def test_a_partition_that_was_stopped_stays_so() -> None:
    world = ProducerWorld(on_failure="stop")
    world.faults.append(Fault.INVALID)
    world.send("t", partition=0)
    world.run_until_ended(LONG)
    world.run(10 * IDLE)
    with pytest.raises(DeliveryFailed, match="takes no messages since one failed"):
        world.send("t", partition=0)


def test_a_partition_that_was_stopped_since_its_topic_was_refused_stays_so() -> None:
    """The topic was forgotten at once, and what was sent later was stored: behind a gap."""
    world = ProducerWorld(on_failure="stop")
    world.cluster.refused.add("t")
    world.send("t", partition=0)
    world.run_until_ended(LONG)
    world.cluster.refused.clear()
    world.send("t", partition=0)
    world.run_until_ended(LONG)
    assert {each.outcome for each in world.sent} == {Outcome.NOT_WRITTEN}
    assert "takes no messages since one failed" in str(world.sent[1].error)
    world.pipeline.dispatcher.topic("t").stopped.clear()
    world.send("t", partition=0)
    world.run_until_ended(LONG)
    check_accounts(world)
    assert len(world.log("t", 0)) == 1


def test_a_topic_that_is_refused_is_forgotten_at_once() -> None:
    """Its name was kept for as long as the producer."""
    world = ProducerWorld()
    world.cluster.refused.add("t")
    world.send("t", partition=0)
    world.run_until_ended(LONG)
    assert world.pipeline.dispatcher.topics == {}
    assert world.pipeline.brokers._metadata._topics == {}


def hide(world: ProducerWorld) -> None:
    world.cluster.hidden.add("t")


def elect(world: ProducerWorld) -> None:
    world.cluster.leaders["t", 0] = None


@pytest.mark.parametrize("trouble", [hide, elect])
def test_a_topic_with_messages_is_not_idle(trouble: Callable[[ProducerWorld], None]) -> None:
    world = ProducerWorld(delivery_timeout_ms=10_000_000, metadata_max_idle_ms=1000)
    trouble(world)
    waits = world.send("t", partition=0)
    world.run(2000)
    world.heal()
    world.run_until_ended(LONG)
    assert waits.outcome is Outcome.DELIVERED


def test_what_was_retried_stays_counted() -> None:
    world = ProducerWorld()
    world.faults.append(Fault.TOO_FEW)
    send_and_leave(world)
    assert list(world.pipeline.dispatcher.topics) == ["u"]
    assert world.pipeline.metrics(world.now).retries > 0


def test_a_topic_may_be_forgotten_while_the_coordinator_is_told_of_it() -> None:
    """The answer was a defect, which broke the producer."""
    world = TransactionWorld(0, ("t",), metadata_max_age_ms=1, metadata_max_idle_ms=1, retry_backoff_ms=1)
    state = world.transactions.state
    world.start(world.transactions.init())
    world.run(1)
    state.apply("begin")
    sent = world.send("t", partition=0)
    while not state.asked:
        world.run(0.001)
    assert world.pipeline.dispatcher.withdraw(sent)
    world.run(0.003)
    assert (list(world.pipeline.dispatcher.topics), bool(state.asked)) == ([], True)
    world.run(1)
    assert not state.asked
    world.send("t", partition=0)
    world.start(world.transactions.commit())
    world.run(1)
    assert len(world.log("t", 0)) == 1


def epochs_of(world: ProducerWorld, topic: str) -> list[tuple[int, int, int]]:
    """Partition, epoch and first sequence number of the batches of a topic, in the order in which they were sent."""
    found = []
    for _, _, request in world.requests:
        for place, batch in request.batches:
            if place.topic == topic:
                found.append((place.index, int.from_bytes(batch.data[51:53], "big"), batch.sequence))
    return found


def test_sequence_numbers_of_forgotten_topics_do_not_pile_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """They were kept for as long as the producer. A partition that returns begins in an epoch that it has not had."""
    monkeypatch.setattr(idle_topics, "_MOST", 2)
    world = ProducerWorld()
    world.cluster.answers_duplicates = True
    send_and_leave(world)
    assert world.pipeline._idle_topics.sequences == {}
    for index in (0, 0, 1, 2):
        world.send("t", partition=index)
        world.run_until_ended(LONG)
    world.send("u", partition=1)
    world.run_until_ended(LONG)
    assert {each.outcome for each in world.sent} == {Outcome.DELIVERED}
    assert epochs_of(world, "t")[3:] == [(0, 1, 0), (0, 1, 1), (1, 1, 0), (2, 1, 0)]
    assert {epoch for _, epoch, _ in epochs_of(world, "u")} == {0}, "the others keep theirs"
    check(world)


def test_after_the_last_epoch_forgotten_partitions_begin_with_another_producer_id(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(idle_topics, "_MOST", 2)
    world = ProducerWorld()
    world.cluster.first_epoch = LAST_EPOCH
    send_and_leave(world)
    assert world.pipeline._idle_topics.sequences == {}
    world.cluster.first_epoch = 0
    back = world.send("t", partition=0)
    world.run_until_ended(LONG)
    assert back.outcome is Outcome.DELIVERED
    assert (world.cluster.producer_ids, epochs_of(world, "t")[3:]) == (2, [(0, 0, 0)])
    check(world)


def test_a_transactional_producer_keeps_its_sequence_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the coordinator gives it another epoch."""
    monkeypatch.setattr(idle_topics, "_MOST", 0)
    world = TransactionWorld(0, ("t",), metadata_max_age_ms=100, metadata_max_idle_ms=100)
    world.start(world.transactions.init())
    world.run(1)
    for expected in range(3):
        world.transactions.state.apply("begin")
        world.send("t", partition=0)
        world.start(world.transactions.commit())
        world.run(10)
        assert world.pipeline.dispatcher.topics == {}
        assert epochs_of(world, "t")[-1][2] == expected
    assert len(world.log("t", 0)) == 3
