"""Any history of lost, late, doubled and reordered messages, of crashes, pauses and moved leaders keeps the promises.

No acknowledged record is lost while one in sync lives, watermarks do not go back, logs do not differ below them, and an
epoch has one leader. `make replication-model` tries more histories.
"""

import os

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from replication_world import World

EXAMPLES = int(os.environ.get("KORVET_TEST_REPLICATION", "300"))

# What happens, and how often beside the others.
EVENTS = (
    *["deliver"] * 8,
    *["fetch"] * 5,
    *["produce"] * 3,
    *["ask"] * 3,
    *["work"] * 4,
    "flush",
    "flush",
    "isr",
    "isr",
    "repeat",
    "drop",
    "pass",
    "long",
    "crash",
    "restart",
    "restart",
    "move",
    "cut",
    "heal",
)
STEPS = st.lists(st.tuples(st.sampled_from(EVENTS), st.integers(0, 50)), max_size=150)


def step(world: World, event: str, number: int, value: int) -> None:
    """One thing happens to one broker, or to one message."""
    identity = 1 + number % len(world.brokers)
    broker, network = world.brokers[identity], world.network
    others = [one for one in (0, *world.brokers) if one != identity]
    pair = frozenset((identity, others[number // len(world.brokers) % len(others)]))
    act = {
        "deliver": lambda: network.deliver(number),
        "repeat": lambda: network.deliver(number, keep=True),
        "drop": lambda: network.drop(number),
        "fetch": broker.fetch,
        "produce": lambda: broker.produce(value),
        "ask": lambda: broker.ask_registry() if broker.up else None,
        "flush": lambda: broker.flush() if broker.up else None,
        "isr": lambda: broker.check_isr() if broker.up else None,
        "crash": lambda: world.crash(identity),
        "restart": broker.restart,
        "move": lambda: world.move(identity),
        "cut": lambda: network.cut.add(pair),
        "heal": lambda: network.cut.discard(pair),
        "work": world.work,
        "pass": lambda: None,
        "long": lambda: None,
    }[event]
    world.now += {"long": 11.0, "pass": 2.0}.get(event, 0.05)
    act()


@settings(
    max_examples=EXAMPLES,
    derandomize="KORVET_TEST_REPLICATION" not in os.environ,
    deadline=None,
    database=None,
    suppress_health_check=list(HealthCheck),
)
@given(st.sampled_from([(3, 2), (3, 1), (2, 2), (4, 2)]), st.integers(0, 40), STEPS)
def test_promises_hold(size: tuple[int, int], calm: int, steps: list[tuple[str, int]]) -> None:
    world = World(*size)
    world.settle(3)  # somebody leads, and all follow
    for value in range(calm % 5):
        world.brokers[world.registry.leader].produce(value)
    for number, (event, choice) in enumerate(steps):
        step(world, event, choice, 100 + number)
        world.check()
    world.settle()
    leader = world.brokers[world.registry.leader]
    assert leader.leading is not None, "somebody leads in the end"
    assert world.registry.isr == frozenset(world.brokers), "all are in sync in the end"
    assert leader.leading.high_watermark == len(leader.log)
    assert all(broker.log == leader.log for broker in world.brokers.values())
    assert {offset: leader.log[offset] for offset in world.acknowledged} == world.acknowledged
