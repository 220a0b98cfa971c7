"""Thousands of histories of failures under a virtual clock; each has to keep every promise of the producer.

The same 300 each time; `KORVET_TEST_SIMULATIONS=5000` (`make simulate`) draws new ones. What fails is printed so that
it runs again.
"""

import os
from collections.abc import Callable
from random import Random
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from producer_cluster import SimulatedCluster
from producer_invariants import check
from producer_messages import SentMessage, withdraw
from producer_world import Fault, ProducerWorld

LONG = os.environ.get("KORVET_TEST_SIMULATIONS")
EXAMPLES = int(LONG or "300")
TOPICS = ("t", "u")
HEALING = 10.0  # seconds beside a request timeout: all pauses together, and a full queue of small batches
LATE = 120.0  # seconds; by then brokers have carried out what had lost its connection

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

# How often each step is taken, in histories of three kinds.
CALM = {"send": 10, "run": 6, "fault": 2, "move": 1, "withdraw": 1, "flush": 1, "shrink": 1}
ROUGH = {"send": 10, "run": 6, "fault": 5, "move": 3, "cut": 3, "control": 1, "withdraw": 1, "flush": 1, "shrink": 1}
OUTAGES = {
    "send": 8,
    "run": 4,
    "long": 3,
    "fault": 3,
    "move": 2,
    "kill": 3,
    "start": 1,
    "hide": 1,
    "show": 2,
    "control": 1,
}


def write_script(random: Random, weights: dict[str, int], length: int) -> list[tuple[Any, ...]]:
    """Steps for `_do`, chosen by the seed alone."""
    faults = list(Fault)
    arguments: dict[str, Callable[[], tuple[Any, ...]]] = {
        "send": lambda: (random.choice(TOPICS), random.randint(-1, 2), random.randint(1, 12)),
        "run": lambda: (random.choice([0.001, 0.003, 0.01, 0.1, 1.0]),),
        "long": lambda: (random.uniform(1, 40),),
        "fault": lambda: (random.choices(faults, k=random.randint(1, 6)),),
        "move": lambda: (random.choice(TOPICS), random.randint(0, 2), random.choice([0, 1, 2, None])),
        "kill": lambda: (random.randint(0, 2),),
        "start": lambda: (random.randint(0, 2),),
        "cut": lambda: (random.randint(0, 2),),
        "hide": lambda: (random.choice(TOPICS),),
        "show": lambda: (random.choice(TOPICS),),
        "control": lambda: (random.randint(1, 4),),
        "shrink": lambda: (random.choice([150, 1 << 20]),),
        "withdraw": lambda: (random.randint(0, 1 << 16),),
        "flush": lambda: (),
    }
    steps = random.choices(list(weights), list(weights.values()), k=length)
    return [(step, *arguments[step]()) for step in steps]


# A message had its partition chosen while it waited for memory.
@example(275, {"acks": "1", "partitioner": "murmur2", "buffer_memory": 8000}, CALM, 0)
@settings(max_examples=EXAMPLES, derandomize=LONG is None)
@given(st.integers(0, 1 << 32), configs, st.sampled_from([CALM, ROUGH, OUTAGES]), st.sampled_from([0, 32_766]))
def test_every_promise_is_kept(seed: int, config: dict[str, Any], weights: dict[str, int], epoch: int) -> None:
    random = Random(seed)
    cluster = SimulatedCluster(topics=TOPICS)
    cluster.first_epoch = epoch
    given_settings = {"max_request_size": 1000, "max_block_ms": 2000, **config}
    world = ProducerWorld(seed, cluster, **given_settings)
    for step in write_script(random, weights, random.randint(5, 60)):
        _do(world, *step)
    if random.random() < 0.5:
        world.pipeline.close()
        world.pump()
    world.heal()
    world.run_until_ended(world.config.request_timeout + HEALING)  # P9
    world.run(LATE)
    check(world)


def _do(world: ProducerWorld, step: str, *arguments: Any) -> None:
    match step, arguments:
        case "send", (topic, partition, times):
            world.send_together(topic, partition, times)
            if world.random.random() < 0.7:  # else the next step comes in the same turn of the loop
                world.pump()
        case "run" | "long", (seconds,):
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
                sent = world.sent[-1 - index % min(20, len(world.sent))]
                assert isinstance(sent, SentMessage)
                withdraw(sent, world.pump)
        case _:
            world.pipeline.flush()
            world.pump()
