"""The arithmetic of a rate: who waits as long as told gets the rate and one burst, and nobody below it ever waits."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from korvet_fast.core.quotas.token_bucket import BURST, PATIENCE, TokenBucket

RATES = st.floats(0.01, 1e9)
# Seconds after the wait that was told, and what is then taken, in seconds of the rate.
STEPS = st.lists(st.tuples(st.floats(0, 100), st.floats(0, 1000)), min_size=1, max_size=50)


@given(RATES, STEPS)
def test_whoever_waits_gets_the_rate_and_one_burst(rate: float, steps: list[tuple[float, float]]) -> None:
    bucket, now, taken = TokenBucket(rate, 0.0), 0.0, 0.0
    for gap, seconds in steps:
        now += gap
        assert taken <= (BURST + now) * rate * (1 + 1e-9)  # all that came before, when the next may come
        taken += seconds * rate
        now += bucket.take(seconds * rate, now)
        assert bucket.take(0, now) <= 1e-6 * max(now, 1)  # the debt is paid when the time is over


@given(RATES, STEPS)
def test_the_wait_is_that_of_exact_numbers(rate: float, steps: list[tuple[float, float]]) -> None:
    bucket, now = TokenBucket(rate, 0.0), 0.0
    exact, full = Fraction(rate) * Fraction(BURST), Fraction(rate) * Fraction(BURST)
    for gap, seconds in steps:
        amount, before = seconds * rate, now
        now += gap
        kept = min(exact + (Fraction(now) - Fraction(before)) * Fraction(rate), full)
        exact = max(kept - Fraction(amount), -Fraction(PATIENCE) * Fraction(rate))
        wanted = float(max(-exact, 0) / Fraction(rate))
        assert bucket.take(amount, now) == pytest.approx(wanted, abs=1e-6, rel=1e-6)


@given(RATES, st.lists(st.floats(0, BURST), max_size=50))
def test_nobody_below_the_rate_waits(rate: float, gaps: list[float]) -> None:
    bucket, now = TokenBucket(rate, 0.0), 0.0
    for gap in gaps:
        now += gap
        assert bucket.take(gap * rate * 0.999, now) == 0


def test_a_burst_waits_as_long_as_at_kafka() -> None:
    # Kafka: (rate seen - quota) / quota x window, with a window of ten seconds after a rest.
    assert TokenBucket(100, 0.0).take(3000, 0.0) == pytest.approx((3000 / 10 - 100) / 100 * 10)


def test_a_debt_is_paid_within_an_hour() -> None:
    bucket = TokenBucket(1, 0.0)
    assert bucket.take(1e9, 0.0) == PATIENCE
    assert bucket.take(0, PATIENCE) == 0


def test_another_rate_holds_from_the_next_time_on() -> None:
    bucket = TokenBucket(10, 0.0)
    assert bucket.take(200, 0.0) == 10
    bucket.rate = 100
    assert bucket.take(0, 0.0) == 1
