"""The invariants after every history of the producer, whatever went wrong: P1 to P9, P13 and P14 of its design."""

from korvet_fast.client.producer.message import BufferFull, Cancelled, Outcome
from producer_world import ProducerWorld


def check(world: ProducerWorld) -> None:
    """Every message has ended, and nothing can happen any more."""
    check_accounts(world)
    world.messages.check(world.cluster.partitions if world.config.partitioner == "murmur2" else None)
    for topic, index in world.cluster.logs:
        check_partition(world, topic, index)


def check_accounts(world: ProducerWorld) -> None:
    counts, memory = world.pipeline.ledger.counts, world.pipeline.ledger.memory
    assert [each for each in world.sent if each.outcome is None] == []
    assert len(world.ended) == len(world.sent) == counts.accepted  # P1
    assert counts.open == 0
    assert memory.empty, "all memory is given back"  # P7; `pump` checks the budget at every step
    assert memory.peak <= memory.total
    slack = world.config.request_timeout + 0.01
    for each in world.sent:
        if each.deadline:  # 0: it ended in line for memory, where max.block.ms is the limit
            assert world.ended_at[each] <= each.deadline + slack  # P8


def check_partition(world: ProducerWorld, topic: str, index: int) -> None:
    sent = [each for each in world.sent if (each.topic, each.partition) == (topic, index)]
    log = world.log(topic, index)
    values = {each.values[0]: each for each in sent}
    number = {each: place for place, each in enumerate(world.sent)}
    delivered = [each for each in sent if each.outcome is Outcome.DELIVERED]
    offsets = [each.offset for each in delivered if each.offset >= 0]
    assert offsets == sorted(set(offsets))  # P2
    assert {each.values[0] for each in delivered} <= set(log)  # P3
    assert all(log[each.offset] == each.values[0] for each in delivered if each.offset >= 0)
    assert not {each.values[0] for each in sent if each.outcome is Outcome.NOT_WRITTEN} & set(log)  # P6
    if world.config.idempotent:
        assert len(set(log)) == len(log)  # P4
        # Order, whatever failed between. An epoch fences what is late of those before it. A new producer id, after the
        # last epoch, does not: then what ended as unknown may be written behind what was sent later.
        fenced = world.cluster.producer_ids == 1
        numbers = [number[values[each]] for each in log if fenced or values[each].outcome is Outcome.DELIVERED]
        assert numbers == sorted(numbers)
    counted = [each for each in sent if not isinstance(each.error, Cancelled)]
    if world.config.idempotent and world.config.on_failure == "stop":
        kept = [each for each in counted if not isinstance(each.error, BufferFull)]
        assert log == [each.values[0] for each in kept[: len(log)]]  # P5
    if world.config.on_failure != "continue":
        here = [each for each in world.ended if (each.topic, each.partition) == (topic, index)]
        reached = [each for each in here if each.deadline]  # those that ended in line for memory never came here
        order = [number[each] for each in reached if not isinstance(each.error, BufferFull | Cancelled)]
        assert order == sorted(order)  # P14
