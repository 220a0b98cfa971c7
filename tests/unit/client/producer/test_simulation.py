"""Thousands of histories of failures under a virtual clock; each has to keep every promise of the producer.

`KORVET_TEST_SIMULATIONS=5000` (`make simulate`) tries more of them. What fails is printed so that it runs again.
"""

import os
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from korvet_fast.client.producer.message import DeliveryFailed
from producer_cluster import SimulatedCluster
from producer_invariants import check
from producer_world import Fault, ProducerWorld

EXAMPLES = int(os.environ.get("KORVET_TEST_SIMULATIONS", "300"))
TOPICS = ("t", "u")
HEALING = 120.0  # seconds; far more than deadline and request timeout together

configs = st.fixed_dictionaries(
    {},
    optional={
        "acks": st.sampled_from(["1", "all"]),
        "max_in_flight_requests_per_connection": st.integers(1, 5),
        "linger_ms": st.sampled_from([0, 5, 200]),
        "batch_size": st.sampled_from([100, 400, 131_072]),
        "batch_num_messages": st.sampled_from([0, 1, 3]),
        "retries": st.integers(1, 4),
        "on_failure": st.sampled_from(["fail", "stop", "continue"]),
        "delivery_timeout_ms": st.sampled_from([3_000, 30_000]),
        "request_timeout_ms": st.sampled_from([500, 5_000]),
        "buffer_memory": st.sampled_from([8_000, 1 << 24]),
        "partitioner": st.sampled_from(["murmur2", "round_robin", "random"]),
    },
)
nodes = st.integers(0, 2)
partitions = st.integers(0, 2)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("send"), st.sampled_from(TOPICS), st.integers(-1, 2), st.integers(1, 12)),
        st.tuples(st.just("send"), st.sampled_from(TOPICS), st.integers(-1, 2), st.integers(1, 12)),
        st.tuples(st.just("run"), st.sampled_from([0.001, 0.003, 0.01, 0.1, 1.0, 7.0])),
        st.tuples(st.just("fault"), st.lists(st.sampled_from(list(Fault)), min_size=1, max_size=6)),
        st.tuples(st.just("move"), st.sampled_from(TOPICS), partitions, st.one_of(nodes, st.none())),
        st.tuples(st.just("kill"), nodes),
        st.tuples(st.just("start"), nodes),
        st.tuples(st.just("cut"), nodes),
        st.tuples(st.just("hide"), st.sampled_from(TOPICS)),
        st.tuples(st.just("show"), st.sampled_from(TOPICS)),
        st.tuples(st.just("control"), st.integers(1, 4)),
        st.tuples(st.just("shrink"), st.sampled_from([150, 1 << 20])),
        st.tuples(st.just("withdraw"), st.integers(0, 50)),
        st.tuples(st.just("flush")),
    ),
    min_size=1,
    max_size=40,
)


@settings(max_examples=EXAMPLES)
@given(st.integers(0, 1 << 16), configs, st.sampled_from([0, 32_766]), steps, st.booleans())
def test_every_promise_is_kept(
    seed: int, config: dict[str, Any], epoch: int, script: list[tuple[Any, ...]], closes: bool
) -> None:
    cluster = SimulatedCluster(topics=TOPICS)
    cluster.first_epoch = epoch
    given_settings = {"max_request_size": 1000, "max_block_ms": 2000, **config}
    world = ProducerWorld(seed, cluster, **given_settings)
    for step in script:
        _do(world, *step)
    if closes:
        world.pipeline.close()
        world.pump()
    world.heal()
    world.run_until_ended(HEALING)
    world.run(HEALING)  # what is late at a broker comes now
    check(world)


def _do(world: ProducerWorld, step: str, *arguments: Any) -> None:
    match step, arguments:
        case "send", (topic, partition, times):
            for _ in range(times):
                try:
                    world.send(topic, partition, wait=world.random.random() < 0.5)
                except DeliveryFailed:
                    pass  # no memory, or the partition is stopped: the message was not accepted
        case "run", (seconds,):
            world.run(seconds)
        case "fault", (faults,):
            world.faults.extend(faults)
        case "move", (topic, partition, node):
            world.cluster.leaders[topic, partition] = node
        case "kill", (node,):
            world.kill(node)
        case "start", (node,):
            world.down.discard(node)
        case "cut", (node,):
            world.cut(node)
        case "hide", (topic,):
            world.cluster.hidden.add(topic)
        case "show", (topic,):
            world.cluster.hidden.discard(topic)
        case "control", (times,):
            world.control_fails = times
        case "shrink", (size,):
            world.cluster.max_batch = size
        case "withdraw", (index,):
            if world.sent:
                world.pipeline.dispatcher.withdraw(world.sent[index % len(world.sent)])
                world.pump()
        case _:
            world.pipeline.flush()
            world.pump()
