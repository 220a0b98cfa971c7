"""Rates between two looks."""

from korvet_fast.wire.http.topic_rates import Counts, Rates, TopicRates


def test_rates_need_two_samples_some_time_apart() -> None:
    rates = TopicRates()
    assert rates.measure(b"a", Counts(0, 0, 0), 10.0) is None
    assert rates.measure(b"a", Counts(50, 50, 50), 10.5) is None
    measured = rates.measure(b"a", Counts(100, 2000, 30), 12.0)
    assert measured == Rates(50.0, 1000.0, 15.0)
    assert rates.measure(b"a", Counts(900, 9000, 900), 12.5) == measured  # too soon: as before
    assert rates.measure(b"b", Counts(1, 1, 1), 12.0) is None


def test_counts_that_fell_and_samples_of_long_ago_give_no_rate() -> None:
    rates = TopicRates()
    rates.measure(b"a", Counts(9, 9, 9), 10.0)
    assert rates.measure(b"a", Counts(1, 1, 1), 12.0) is None
    assert rates.measure(b"a", Counts(3, 1, 1), 14.0) == Rates(1.0, 0.0, 0.0)
    assert rates.measure(b"a", Counts(99, 99, 99), 80.0) is None
    rates.forget_old(139.0)
    assert rates.measure(b"a", Counts(101, 99, 99), 139.0) == Rates(2 / 59, 0.0, 0.0)
    rates.forget_old(1000.0)
    assert rates._samples == {}
