"""Segments as OFFSETS tells of them: the table of Kafka 0.7's answers, and Kafka's own golden case."""

import pytest

from korvet_fast.core.partition.legacy_segments import LegacySegments
from korvet_fast.store.types import SegmentLimits

NOW = 10_000
LIMITS = SegmentLimits(100, 1 << 40)


def rolled(size: int, many: int, limit: int) -> LegacySegments:
    """Appends of `size` bytes, each a second after the other, to segments that are full above `limit`."""
    segments = LegacySegments()
    for number in range(many):
        time = number * 1000
        begins = segments.is_full(time, SegmentLimits(limit, 1 << 40))
        segments.note(number * size, (number + 1) * size, time, begins=begins)
    return segments


def test_kafkas_own_case() -> None:
    segments = rolled(12, 20, 100)
    assert segments.find_offsets(-1, 10, 0, 240, NOW) == [240, 216, 108, 0]


@pytest.mark.parametrize(
    ("time", "most", "answer"),
    [
        (-1, 1, [1000]),
        (-1, 2, [1000, 800]),
        (-1, 10, [1000, 800, 400, 0]),
        (-2, 1, [0]),
        (-2, 10, [0]),
        (5000, 10, [0]),  # between the last write to segment 0 (3000) and the last to segment 400 (7000)
        (7500, 10, [400, 0]),
        (NOW - 1, 10, [800, 400, 0]),  # the present moment: the end has the time of the clock
        (NOW + 1, 10, [1000, 800, 400, 0]),
        (0, 10, []),
        (-3, 10, []),
        (-1, 0, []),
        (-2, 0, []),
    ],
)
def test_the_table_of_offsets(time: int, most: int, answer: list[int]) -> None:
    segments = rolled(100, 10, 300)
    assert segments.find_offsets(time, most, 0, 1000, NOW) == answer


def test_the_edges_that_a_fetch_ends_at() -> None:
    segments = rolled(100, 10, 300)
    assert [segments.find_edge(at) for at in (0, 399, 400, 799, 800, 1000)] == [400, 400, 800, 800, None, None]


def test_what_is_not_durable_or_was_taken_away_is_not_told() -> None:
    segments = rolled(100, 10, 300)
    assert segments.find_offsets(-1, 10, 0, 750, NOW) == [750, 400, 0]
    assert segments.find_offsets(-1, 10, 0, 800, NOW) == [800, 400, 0]
    assert segments.find_offsets(-1, 10, 400, 1000, NOW) == [1000, 800, 400]
    assert segments.find_offsets(-1, 10, 450, 1000, NOW) == [1000, 800, 450]
    assert segments.find_offsets(-2, 10, 1000, 1000, NOW) == [1000]


def test_an_old_segment_is_full() -> None:
    segments = LegacySegments()
    assert not segments.is_full(NOW, LIMITS)
    segments.note(0, 10, 0)
    assert not segments.is_full(5, SegmentLimits(100, 5))
    assert segments.is_full(6, SegmentLimits(100, 5))


def test_a_gap_begins_a_segment_and_a_loss_ends_one() -> None:
    segments = rolled(100, 3, 1000)
    segments.note(500, 600, 9000)
    assert segments.find_offsets(-1, 10, 0, 600, NOW) == [600, 500, 0]
    segments.note(300, 400, 9500)  # what was appended at 500 is not there
    assert segments.find_offsets(-1, 10, 0, 400, NOW) == [400, 0]


def test_they_are_packed_and_loaded() -> None:
    segments, other = rolled(100, 10, 300), LegacySegments()
    assert other.load(memoryview(segments.pack() + b"rest")) == b"rest"
    assert (other.pack(), other.end) == (segments.pack(), 1000)
    other.clear()
    assert other.find_offsets(-1, 10, 0, 0, NOW) == [0]


def test_what_was_appended_before_a_kill_is_cut_as_it_was() -> None:
    told, replayed = rolled(100, 10, 300), LegacySegments(SegmentLimits(300, 1 << 40))
    for number in range(10):
        replayed.replay(number * 100, (number + 1) * 100, number * 1000)
    assert replayed.pack() == told.pack()


def test_a_set_of_several_batches_is_not_divided_where_it_is_replayed() -> None:
    segments = LegacySegments(SegmentLimits(300, 1 << 40))
    for number in range(10):
        segments.replay(number * 100, (number + 1) * 100, 1000)  # one set: all have the time of its append
    segments.replay(1000, 1100, 2000)
    assert segments.find_offsets(-1, 10, 0, 1100, NOW) == [1100, 1000, 0]
