"""Wall time for what deletes: a clock that is wrong for a moment deletes nothing."""

from itertools import accumulate

from hypothesis import given
from hypothesis import strategies as st

from core_world import StillClock

HOUR = 3600
LEAD = 2 * HOUR * 1000  # ms


def move(clock: StillClock, seconds: float, step_ms: int = 0) -> int:
    """Both clocks go on, and wall time steps; what is told then, against true wall time before the step."""
    clock.seconds += seconds
    clock.ms += int(seconds * 1000) + step_ms
    return clock.settled_wall() - clock.ms


def test_a_step_forward_counts_when_it_has_stood_for_an_hour() -> None:
    clock = StillClock()
    assert move(clock, 0) == 0
    assert move(clock, 10, LEAD) == -LEAD
    for _ in range(59):
        assert move(clock, 60) == -LEAD
    assert move(clock, 60) == 0


def test_a_step_back_counts_at_once_and_the_way_forward_an_hour_later() -> None:
    clock = StillClock()
    move(clock, 0)
    assert move(clock, 1, -LEAD) == 0
    assert move(clock, 1, LEAD) == -LEAD
    assert move(clock, HOUR - 1) == -LEAD
    assert move(clock, 1) == 0


def test_a_strobing_clock_never_gets_ahead_and_takes_no_memory() -> None:
    clock = StillClock()
    move(clock, 0)
    for number in range(3 * HOUR):
        told = move(clock, 1, -LEAD if number % 2 else LEAD)
        assert told == (0 if number % 2 else -LEAD)
    assert len(clock._steps) <= 2


def test_who_asks_seldom_believes_no_step_at_first_sight() -> None:
    clock = StillClock()
    move(clock, 0)
    assert move(clock, 10 * HOUR, LEAD) == -LEAD
    assert move(clock, 10 * HOUR) == 0


@given(st.lists(st.tuples(st.integers(0, 2000), st.integers(-100, 100)), min_size=1, max_size=60))
def test_it_is_the_earliest_clock_of_the_last_hour(moves: list[tuple[int, int]]) -> None:
    """Or of the last time before that hour at which somebody asked."""
    clock = StillClock()
    clock.settled_wall()
    times = list(accumulate((seconds for seconds, _ in moves), initial=0))
    leads = list(accumulate((step for _, step in moves), initial=0))
    for number, (seconds, step) in enumerate(moves, start=1):
        told = move(clock, seconds, step) + leads[number]
        hour_ago = times[number] - HOUR
        first = max((each for each in range(number + 1) if times[each] <= hour_ago), default=0)
        assert told == min(leads[first : number + 1])
