"""Leader epochs: where each one's records end."""

import pytest

from korvet_fast.core.partition.leader_epochs import LeaderEpochCache


@pytest.mark.parametrize(
    ("asked", "answer"),
    [(0, (0, 10)), (2, (2, 10)), (3, (3, 40)), (4, (3, 40)), (5, (5, 100)), (6, (-1, -1))],
)
def test_an_epoch_ends_where_the_next_begins(asked: int, answer: tuple[int, int]) -> None:
    epochs = LeaderEpochCache([(2, 0), (3, 10), (5, 40)])
    expected = (asked, 0) if asked < 2 else answer
    assert epochs.find_end(asked, 0, 100) == expected


@pytest.mark.parametrize(("offset", "epoch"), [(4, -1), (5, 2), (9, 2), (10, 3), (39, 3), (40, 5), (1000, 5)])
def test_a_record_has_the_epoch_that_began_last_before_it(offset: int, epoch: int) -> None:
    assert LeaderEpochCache([(2, 5), (3, 10), (5, 40)]).find_epoch(offset) == epoch


def test_no_record_of_an_empty_history_has_an_epoch() -> None:
    assert LeaderEpochCache().find_epoch(0) == -1


def test_ends_are_never_below_the_start_of_the_log() -> None:
    assert LeaderEpochCache([(0, 0), (1, 10)]).find_end(0, 50, 100) == (0, 50)


def test_nobody_is_told_where_an_unknown_epoch_ends() -> None:
    epochs = LeaderEpochCache([(0, 0), (1, 10)])
    assert epochs.find_end(-1, 0, 100) == (-1, -1)


def test_nothing_is_known_of_an_empty_log() -> None:
    assert LeaderEpochCache().find_end(0, 0, 0) == (-1, -1)


def test_adding_keeps_the_first_offset_of_each_epoch() -> None:
    epochs = LeaderEpochCache()
    for epoch, offset in ((0, 0), (0, 5), (3, 9), (3, 12)):
        epochs.add(epoch, offset)
    assert epochs.entries == [(0, 0), (3, 9)]


def test_trimming_forgets_epochs_that_hold_nothing_any_more() -> None:
    epochs = LeaderEpochCache([(0, 0), (1, 10), (2, 20)])
    epochs.trim(10)
    assert epochs.entries == [(1, 10), (2, 20)]
    epochs.trim(500)
    assert epochs.entries == [(2, 20)]


def test_an_epoch_that_wrote_nothing_is_forgotten_when_the_next_one_begins() -> None:
    epochs = LeaderEpochCache()
    for epoch, offset in ((1, 0), (4, 10), (5, 10), (8, 10), (9, 12)):
        epochs.add(epoch, offset)
    assert epochs.entries == [(1, 0), (8, 10), (9, 12)]
    assert epochs.find_end(5, 0, 20) == (1, 10)
