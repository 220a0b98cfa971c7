"""The segments that a program remembers of a log, and the ids of offsets."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from korvet_fast.store.redis.stream import segments
from korvet_fast.store.redis.stream.ids import LAST, find_end, find_offset, pack_id
from korvet_fast.store.redis.stream.segment_table import Segment
from korvet_fast.store.redis.stream.segments import Segments

LIMIT = (100, 50)


def row(first: int, end: int, size: int = 10, time: int = 0) -> Segment:
    return Segment(first, end, size, end - first, time, time)


def spans(known: Segments) -> list[tuple[int, int, int]]:
    return [(each.first, each.end, each.size) for each in known.rows]


@pytest.mark.parametrize(
    ("offset", "entry"),
    [
        (1264197519485952, "1234567890123-0"),
        (1264197519485953, "1234567890123-1"),
        (1264197519485957, "1234567890123-5"),
        (1264197519462400, "1234567890100-0"),
        (5, "0-5"),
    ],
)
def test_golden_ids(offset: int, entry: str) -> None:
    assert pack_id(offset, 10) == entry
    assert find_offset(entry.encode(), 10) == offset
    assert find_end(entry.encode(), 10) == offset + 1


@given(st.integers(1, LAST - 1), st.integers(0, 16))
def test_ids_round_trip(offset: int, bits: int) -> None:
    entry = pack_id(offset, bits).encode()
    assert find_offset(entry, bits) == offset
    assert find_end(entry, bits) == offset + 1


@given(st.integers(0, (1 << 64) - 1), st.integers(0, (1 << 64) - 1), st.integers(0, 16))
def test_ids_of_others(ms: int, sequence: int, bits: int) -> None:
    """Whatever id: its offset is the first at or above it, and all above its end lie above it."""
    entry = b"%d-%d" % (ms, sequence)
    offset, end = find_offset(entry, bits), find_end(entry, bits)
    assert 0 <= offset <= end <= LAST
    if offset < LAST:
        assert tuple(map(int, pack_id(offset, bits).split("-"))) >= (ms, sequence)
    if end < LAST and (ms, sequence) != (0, 0):
        assert tuple(map(int, pack_id(end, bits).split("-"))) > (ms, sequence)


def test_grow() -> None:
    known = Segments()
    for each in (row(0, 5, 60), row(5, 9, 40), row(9, 10, 1), row(20, 25, 10), row(25, 26, 1, 51), row(26, 27, 1, 60)):
        known.grow(each, LIMIT)
    assert spans(known) == [(0, 9, 100), (9, 10, 1), (20, 25, 10), (25, 27, 2)]
    found = known.find(26)
    assert found is not None
    assert (found.latest, found.count) == (60, 2)
    assert known.find(10) is None
    assert known.find_unknown(0, 30) == (10, 20)
    assert known.find_unknown(20, 40) == (27, 40)
    assert known.find_unknown(0, 10) is None
    known.note(row(10, 20))
    known.note(row(10, 15))  # somebody else was quicker
    assert known.find_unknown(0, 27) is None
    known.trim(10)
    assert spans(known)[0][0] == 10
    known.clear()
    assert known.find_unknown(0, 1) == (0, 1)


def test_distrust() -> None:
    """The entries appended since the last look are forgotten, and nothing else."""
    known = Segments()
    known.grow(row(0, 5), LIMIT)
    known.trust(5)
    known.grow(row(5, 8), LIMIT)
    known.grow(row(30, 40), LIMIT)
    known.distrust()
    assert spans(known) == [(0, 5, 10)]
    known.grow(row(40, 50), LIMIT)
    known.trust(50)
    known.distrust()
    assert spans(known) == [(0, 5, 10), (40, 50, 10)]


def test_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(segments, "MOST", 10)
    known = Segments()
    for number in range(100):
        known.grow(row(number, number + 1, 100, number), LIMIT)
    assert len(known.rows) <= 10
    assert (known.rows[0].first, known.rows[-1].end) == (0, 100)
    assert sum(each.size for each in known.rows) == 10_000
    assert known.find_unknown(0, 100) is None


@given(st.lists(st.tuples(st.sampled_from(["grow", "note", "trust", "distrust", "trim", "pack"]), st.integers(0, 60))))
def test_whatever_happens_the_segments_rise_and_cover_each_offset_once(steps: list[tuple[str, int]]) -> None:
    """Packing changes nothing, and what was never appended or read is not known."""
    known, start, end, covered = Segments(), 0, 0, set[int]()
    for what, number in steps:
        if what == "grow":
            begin = end + number % 3
            end = begin + 1 + number % 7
            known.grow(row(begin, end, 10 + number, number), LIMIT)
            covered |= {*range(begin, end)}
        if what == "note" and (gap := known.find_unknown(start, end)) is not None:
            known.note(row(gap[0], min(gap[0] + 1 + number, gap[1])))
            covered |= {*range(gap[0], min(gap[0] + 1 + number, gap[1]))}
        assert known.rows.measure(number) == sum(each.size for each in known.rows if each.end <= number)
        assert known.rows.measure(LAST) == sum(each.size for each in known.rows)
        assert known.rows.find_latest() == max((each.latest for each in known.rows), default=-1)
        if what == "trust":
            known.trust(end)
        elif what == "distrust":
            known.distrust()
        elif what == "trim":
            start = max(start, min(number, end))  # nobody reads what is below
            known.trim(start)
        elif what == "pack":
            before, packed = spans(known), known.pack()
            known.clear()
            assert known.unpack(b"beside" + packed + b"more", 6) == 6 + len(packed)
            assert (spans(known), known.pack()) == (before, packed)
        found = spans(known)
        assert all(one[1] <= other[0] for one, other in pairwise(found))
        assert all({*range(first, until)} <= covered for first, until, _ in found)
        for first, until, _ in found:
            assert [known.find(offset) is not None for offset in (first, until - 1)] == [True, True]
