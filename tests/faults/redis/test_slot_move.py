"""A slot of a Redis Cluster moves to another node, key by key, while records are written (reliability F19)."""

from collections.abc import Callable
from functools import partial

from broker_process import BrokerProcess
from faults.redis.load import Load, create_topic
from faults.redis.refusals import refusals, wait_for_more
from redis_cluster import Cluster
from redis_server import RedisServer


def test_a_slot_moves_under_load(serve: Callable[..., BrokerProcess], redis_cluster: Cluster) -> None:
    broker = serve(redis_cluster.url)
    create_topic(broker.bootstrap, "load", 2)
    load = Load(broker.bootstrap)
    with load.running():
        for _ in range(2):
            load.wait_for(50)
            slot = redis_cluster.slot("korvet:load:0")
            source = redis_cluster.owner(slot)
            target = redis_cluster.nodes[(redis_cluster.nodes.index(source) + 1) % 3]
            met = _count_met(source, target)
            for key in redis_cluster.move(slot, target):
                if key:
                    met = wait_for_more(partial(_count_met, source, target), met, "nobody meets the move")
                else:
                    load.wait_for(20)  # both nodes know, and the source still has everything
            load.wait_for(50)
        assert redis_cluster.owner(slot) is target
    assert load.check(broker.port) == set()


def _count_met(source: RedisServer, target: RedisServer) -> int:
    """Refusals of the source, and commands for which the target was asked: who has met ASK once goes there at once."""
    asked = target.info("commandstats").get("cmdstat_asking", "calls=0")
    return refusals(source, "TRYAGAIN", "ASK") + int(asked.split(",")[0].removeprefix("calls="))
