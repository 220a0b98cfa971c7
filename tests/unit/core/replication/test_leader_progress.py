"""The leader's view of its followers: who is in sync, and how far the watermark may rise."""

import pytest

from korvet_fast.core.replication.leader_progress import LagLimits, LeaderProgress

LIMITS = LagLimits(0, 10.0)


def make_progress(
    isr: set[int], end: int = 0, watermark: int = 0, minimum: int = 2, limits: LagLimits = LIMITS
) -> LeaderProgress:
    return LeaderProgress(1, 5, (1, 2, 3), isr, end, watermark, minimum, limits, now=0.0)


def test_the_watermark_is_the_least_log_end_of_those_in_sync() -> None:
    progress = make_progress({1, 2, 3})
    progress.appended(10)
    progress.fetched(2, 10, 1.0)
    assert progress.high_watermark == 0, "nothing is known of broker 3"
    progress.fetched(3, 4, 1.0)
    assert progress.high_watermark == 4


def test_one_who_is_not_in_sync_is_not_waited_for() -> None:
    progress = make_progress({1, 2})
    progress.appended(10)
    assert progress.fetched(2, 10, 1.0)
    assert progress.high_watermark == 10


def test_the_watermark_stays_while_too_few_are_in_sync() -> None:
    progress = make_progress({1})
    assert not progress.suffices
    assert not progress.appended(10)
    assert progress.high_watermark == 0
    progress.fetched(2, 10, 1.0)
    progress.begin_change(frozenset({1, 2}))
    assert progress.high_watermark == 0, "it is not in the metadata log yet"
    assert progress.end_change({1, 2})
    assert progress.high_watermark == 10


def test_who_is_to_leave_is_waited_for_until_the_metadata_log_knows() -> None:
    progress = make_progress({1, 2, 3})
    progress.appended(10)
    progress.fetched(2, 10, 1.0)
    progress.begin_change(frozenset({1, 2}))
    progress.fetched(2, 10, 2.0)
    assert progress.high_watermark == 0
    progress.end_change({1, 2})
    assert progress.high_watermark == 10


def test_who_is_to_join_is_waited_for_at_once() -> None:
    progress = make_progress({1, 2})
    progress.begin_change(frozenset({1, 2, 3}))
    progress.appended(10)
    progress.fetched(2, 10, 1.0)
    assert progress.high_watermark == 0
    progress.fetched(3, 7, 1.0)
    assert progress.high_watermark == 7


def test_who_does_not_fetch_falls_out_of_sync() -> None:
    progress = make_progress({1, 2, 3})
    progress.fetched(2, 0, 9.0)
    assert progress.propose(10.0) is None
    assert progress.propose(10.5) == {1, 2}
    progress.begin_change(frozenset({1, 2}))
    assert progress.propose(30.0) is None, "one change at a time"


def test_who_fetches_and_stays_behind_falls_out_of_sync() -> None:
    progress = make_progress({1, 2, 3})
    progress.appended(100)
    for second in range(1, 12):
        progress.appended(100 + 10 * second)
        progress.fetched(2, 100 + 10 * second, float(second))
        progress.fetched(3, second, float(second))
    assert progress.propose(11.0) == {1, 2}


def test_who_reaches_what_was_the_end_at_its_last_fetch_keeps_up() -> None:
    """Under load nobody ever stands at the very end."""
    progress = make_progress({1, 2, 3})
    for second in range(20):
        progress.fetched(2, 10 * max(0, second - 1), float(second))
        progress.fetched(3, 10 * max(0, second - 1), float(second))
        progress.appended(10 * (second + 1))
    assert progress.propose(19.0) is None


def test_a_lag_in_records_may_be_allowed() -> None:
    progress = make_progress({1, 2, 3}, limits=LagLimits(5, 10.0))
    progress.appended(100)
    progress.fetched(2, 95, 20.0)
    progress.fetched(3, 94, 20.0)
    assert progress.propose(20.0) == {1, 2}


def test_who_has_caught_up_joins() -> None:
    progress = make_progress({1, 2}, end=10, watermark=10)
    progress.fetched(2, 10, 1.0)
    progress.fetched(3, 9, 1.0)
    assert progress.propose(1.0) is None
    progress.fetched(3, 10, 1.0)
    assert progress.propose(1.0) == {1, 2, 3}


@pytest.mark.parametrize(("replica", "offset"), [(4, 5), (2, 11), (1, 10)])
def test_a_lie_is_not_believed(replica: int, offset: int) -> None:
    """A stranger, one who has what nobody wrote, and one who says to be the leader itself."""
    progress = make_progress({1, 2}, end=10)
    assert not progress.fetched(replica, offset, 1.0)
    assert progress.high_watermark == 0


def test_who_goes_back_may_not_lead() -> None:
    progress = make_progress({1, 2, 3}, end=10)
    progress.fetched(2, 10, 1.0)
    progress.fetched(3, 10, 1.0)
    assert progress.high_watermark == 10
    progress.fetched(3, 2, 2.0)
    assert progress.high_watermark == 10, "a watermark never goes back"
    assert progress.propose(2.0) == {1, 2}


def test_who_no_longer_keeps_up_is_not_told_as_in_sync_while_the_metadata_log_cannot_be_written() -> None:
    progress = make_progress({1, 2, 3})
    progress.appended(10)
    for now in (1.0, 11.0):
        progress.fetched(2, 10, now)
    assert progress.find_in_sync(5.0) == {1, 2, 3}
    assert progress.find_in_sync(11.0) == {1, 2}
    progress.begin_change(frozenset({1, 2}))
    assert progress.isr == {1, 2, 3}
    progress.fetched(3, 10, 12.0)
    assert progress.find_in_sync(12.0) == {1, 2, 3}
    assert progress.find_in_sync(30.0) == {1}
