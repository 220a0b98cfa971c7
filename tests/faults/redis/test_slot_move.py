"""A slot of a Redis Cluster moves to another node, key by key, while records are written (reliability F19)."""

from collections.abc import Callable

from broker_process import BrokerProcess
from faults.redis.load import Load, create_topic
from faults.redis.refusals import refusals, wait_for_refusal
from redis_cluster import Cluster


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
            met = refusals(source, "TRYAGAIN", "ASK")
            for key in redis_cluster.move(slot, target):
                if key:
                    met = wait_for_refusal(source, "TRYAGAIN", "ASK", since=met)
                else:
                    load.wait_for(20)  # both nodes know, and the source still has everything
            load.wait_for(50)
        assert redis_cluster.owner(slot) is target
    assert load.check(broker.port) == set()
