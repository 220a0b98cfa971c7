"""Messages with a key that were sent in one turn of the loop: their partitions are chosen together, natively."""

from typing import Any

import pytest

from korvet_fast.client.producer import Cancelled, DeliveryFailed
from korvet_fast.client.producer.hashing import murmur2_hash
from korvet_fast.client.producer.message import Message, Outcome
from producer_messages import SentMessage
from producer_world import ProducerWorld

PARTITIONS = 3


def send(world: ProducerWorld, value: str, key: bytes | None = None, partition: int | None = None) -> SentMessage:
    sent = world.messages.send(Message("t", value.encode(), key, (), partition, 5), world.now, wait=False)
    world.sent.append(sent)
    return sent


def open_world(*, known: bool = True, **settings: Any) -> ProducerWorld:
    """A world. `known`: a first message was sent, so the partitions of its topic are known."""
    world = ProducerWorld(partitioner="murmur2", **settings)
    if known:
        send(world, "first", b"first")
        world.run(1)
    return world


def logs(world: ProducerWorld) -> list[list[bytes]]:
    return [world.log("t", index) for index in range(PARTITIONS)]


@pytest.mark.parametrize("known", [False, True], ids=["before the partitions are known", "afterwards"])
def test_they_go_where_javas_client_sends_them_in_one_batch_each(known: bool) -> None:
    world = open_world(known=known)
    before = len(world.requests)
    sent = [send(world, f"{number}", b"key-%d" % (number % 20)) for number in range(200)]
    world.run(1)
    assert {each.outcome for each in sent} == {Outcome.DELIVERED}
    for each in sent:
        key, found = each.message.key, each.delivery.result()
        assert key is not None
        assert found.partition == murmur2_hash(key, PARTITIONS)
        assert world.log("t", found.partition)[found.offset] == each.message.value
    assert sum(len(request.batches) for _, _, request in world.requests[before:]) == PARTITIONS
    assert world.pipeline.ledger.memory.empty
    world.messages.check(PARTITIONS)


def test_they_keep_their_order_with_those_that_name_a_partition_or_have_no_key() -> None:
    world = open_world()
    keys = (None, b"a", b"b", b"c")
    for number in range(400):
        kind = world.random.randrange(6)
        key, partition = (None, number % PARTITIONS) if kind > 3 else (keys[kind], None)
        send(world, f"{number:03}", key, partition)
    world.run(5)
    found = [[value for value in log if value != b"first"] for log in logs(world)]
    assert sum(map(len, found)) == 400
    assert found == [sorted(log) for log in found]
    world.messages.check(PARTITIONS)


@pytest.mark.parametrize("known", [False, True], ids=["before the partitions are known", "afterwards"])
def test_one_of_them_is_withdrawn_and_the_others_are_sent(known: bool) -> None:
    world = open_world(known=known, linger_ms=100)
    sent = [send(world, f"{number}", b"key-%d" % number) for number in range(30)]
    assert [sent[at].delivery.cancel() for at in (4, 0, 29)] == [True] * 3
    world.run(5)
    assert {type(sent[at].error) for at in (4, 0, 29)} == {Cancelled}
    left = [each for at, each in enumerate(sent) if at not in (4, 0, 29)]
    assert {each.outcome for each in left} == {Outcome.DELIVERED}
    assert sum(map(len, logs(world))) == 27 + known
    assert world.pipeline.ledger.memory.empty


@pytest.mark.parametrize("known", [False, True], ids=["before the partitions are known", "afterwards"])
def test_the_one_that_is_left_of_two_goes_where_its_own_key_says(known: bool) -> None:
    world = open_world(known=known, linger_ms=100)
    keys = [b"a", next(key for key in (b"b", b"c", b"d") if murmur2_hash(key, 3) != murmur2_hash(b"a", 3))]
    gone, left = (send(world, f"{number}", key) for number, key in enumerate(keys))
    assert gone.delivery.cancel()
    world.run(1)
    assert left.delivery.result().partition == murmur2_hash(keys[1], PARTITIONS)
    world.messages.check(PARTITIONS)


def test_a_partition_that_was_stopped_refuses_them_at_send() -> None:
    world = open_world(on_failure="stop")
    topic = world.pipeline.dispatcher.topics["t"]
    topic.stopped[murmur2_hash(b"key", PARTITIONS)] = DeliveryFailed("it failed")
    with pytest.raises(DeliveryFailed, match="takes no messages since one failed: it failed"):
        send(world, "second", b"key")


def test_they_are_counted_at_their_brokers_and_none_has_all_memory() -> None:
    """Where little is left, each is charged to its broker when it is sent."""
    world = open_world(buffer_memory=1 << 20, max_request_size=10_000)
    world.down.update({0, 1, 2})
    for node in range(3):
        world.cut(node)
    accepted = 0
    memory = world.pipeline.ledger.memory
    with pytest.raises(DeliveryFailed, match="no memory"):
        for number in range(10_000):
            send(world, f"{number}" * 20, b"key")
            accepted += 1
            if number % 50 == 0:
                world.pump()
    world.pump()
    assert memory.total // 2 < memory.used <= memory.total * 0.8
    assert accepted > 100
    other = send(world, "other", next(k for k in (b"a", b"b", b"c") if murmur2_hash(k, 3) != murmur2_hash(b"key", 3)))
    world.pump()
    assert other.outcome is None
