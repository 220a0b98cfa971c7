"""Our order beside that of Sarama's machine of retry levels and chasers, on every schedule of failures.

A schedule says which of the first requests are refused, and whether messages come all at once or one with each answer.
"""

from collections.abc import Iterator
from itertools import product

import pytest

from korvet_reference.sarama_order import Item, PartitionLevels, SaramaOrder
from producer_invariants import check
from producer_world import Fault, ProducerWorld

MESSAGES = 6
REQUESTS = 8  # of a schedule; those behind them are stored
Schedule = tuple[bool, ...]


def schedules() -> Iterator[Schedule]:
    return product((False, True), repeat=REQUESTS)


def sarama(window: int, schedule: Schedule, at_once: bool) -> list[int]:
    """The order in which Sarama's machine has messages stored; with so many retries that none fails."""
    machine = SaramaOrder(len(schedule), window, schedule)
    waiting = list(range(MESSAGES))
    for _ in range(MESSAGES if at_once else 1):
        machine.send(waiting.pop(0))
    while machine.answer() or waiting:
        if waiting:
            machine.send(waiting.pop(0))
    assert not machine.failed
    assert sorted(machine.log) == list(range(MESSAGES)), "each message once"
    return machine.log


def ours(window: int, schedule: Schedule, at_once: bool, acks: str) -> list[int]:
    """The order in which our producer has them stored."""
    world = ProducerWorld(acks=acks, max_in_flight_requests_per_connection=window, batch_num_messages=1)
    world.faults.extend(Fault.TOO_FEW if refused else Fault.NONE for refused in schedule)
    for _ in range(MESSAGES):
        world.send(partition=0)
        if not at_once:
            world.run(0.01)
    world.run_until_ended(600)
    check(world)
    numbers = {each.values[0]: number for number, each in enumerate(world.sent)}
    return [numbers[value] for value in world.log("t", 0)]


@pytest.mark.parametrize("at_once", [True, False])
@pytest.mark.parametrize(("window", "acks"), [(1, "1"), (1, "all"), (5, "all"), (5, "1")])
def test_the_order_is_that_of_sarama_wherever_sarama_keeps_it(window: int, acks: str, at_once: bool) -> None:
    kept = 0
    for schedule in schedules():
        reference, found = sarama(window, schedule, at_once), ours(window, schedule, at_once, acks)
        assert found == list(range(MESSAGES)), schedule
        if reference == sorted(reference):
            kept += 1
            assert found == reference
    assert kept == 2**REQUESTS if window == 1 else 0 < kept < 2**REQUESTS


@pytest.mark.parametrize("acks", ["1", "all"])
@pytest.mark.parametrize(
    ("configured", "window", "schedule", "theirs"),
    [
        pytest.param(1, 2, (True,), [1, 0, 2, 3, 4, 5], id="2619_2860_the_next_request_has_left_already"),
        pytest.param(5, 5, (True,), [1, 2, 3, 4, 0, 5], id="3693_refused_for_the_partition_with_five_in_flight"),
        pytest.param(5, 5, (False, True, False, True), [0, 2, 4, 5, 1, 3], id="two_of_those_in_flight_are_refused"),
        pytest.param(5, 5, (True,) * 5 + (False, True), [0, 5, 3, 2, 4, 1], id="refused_again_while_others_come_back"),
    ],
)
def test_a_schedule_on_which_sarama_loses_the_order(
    configured: int, window: int, schedule: Schedule, theirs: list[int], acks: str
) -> None:
    """`window`: requests of Sarama's that nothing holds back any more, one above what was `configured` in 2619."""
    assert sarama(window, schedule, at_once=True) == theirs
    assert ours(configured, schedule, True, acks) == list(range(MESSAGES))


def test_without_its_chaser_a_level_is_never_left() -> None:
    """2175, 2150: a chaser that was lost, or produced as a record, left its partition's messages where they were."""
    levels = PartitionLevels(retries=3)
    assert levels.receive(Item(0, 1)) == [Item(None, 0), Item(0, 1)]
    assert [levels.receive(Item(number, 0)) for number in range(1, 9)] == [[]] * 8
    assert levels.receive(Item(None, 1)) == [Item(number, 0) for number in range(1, 9)]
    assert levels.high_watermark == 0
