"""Which topics ZooKeeper is told of."""

from pathlib import Path

from core_world import run_broker
from korvet_fast.cli.registration import find_topics


async def test_a_topic_is_told_once_all_of_it_is_led_and_stays_told_while_it_grows(tmp_path: Path) -> None:
    async with run_broker(tmp_path) as world:
        await world.broker.topics.create("of-today", 2, {})
        topic = await world.broker.topics.create("clicks", 3, {"storage.layout": "legacy"})
        assert find_topics(world.broker, {}) == {"clicks": 3}
        topic.partitions[2].leader.resign("it has just been added, and nobody leads it yet")
        assert find_topics(world.broker, {}) == {}, "consumers would not look at it again when it has more partitions"
        assert find_topics(world.broker, {"clicks": 2}) == {"clicks": 2}
        await topic.partitions[2].leader.become_leader()
        assert find_topics(world.broker, {"clicks": 2}) == {"clicks": 3}
