"""Times at which partitions are looked at: all that count are kept, and few others."""

from typing import Any

from korvet_fast.client.producer.partition_producer import NEVER
from korvet_fast.client.producer.wake_times import WakeTimes
from producer_world import ProducerWorld

FAR = 1e9


class Sleeper:
    wakes_at = NEVER


def test_times_that_count_no_more_are_not_kept() -> None:
    """Each wake before the far one left a far one behind."""
    wakes = WakeTimes()
    sleepers: list[Any] = [Sleeper() for _ in range(10)]
    for turn in range(10_000):
        sleeper = sleepers[turn % 10]
        wakes.wake(sleeper, turn)
        assert wakes.take_due(turn) == [sleeper]
        wakes.wake(sleeper, FAR + turn % 2)
    assert len(wakes._heap) < 100
    assert set(wakes.take_due(FAR)) == set(sleepers[::2])
    assert wakes.next_time() == FAR + 1
    assert set(wakes.take_due(FAR + 1)) == set(sleepers[1::2])
    assert wakes.next_time() is None


def test_a_partition_that_lingers_takes_no_more_memory_with_each_batch() -> None:
    world = ProducerWorld(linger_ms=5, stall_ms=10**11, delivery_timeout_ms=10**11)
    for _ in range(1000):
        world.send(partition=0)
        world.run_until_ended(60)
    assert len(world.pipeline._wakes._heap) < 100
