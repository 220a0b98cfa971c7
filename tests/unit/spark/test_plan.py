"""Ranges cut into tasks, micro-batches limited, and what is left of a range: for any ranges, in arithmetic."""

from hypothesis import given
from hypothesis import strategies as st

from korvet_fast.spark.plan import Range, clip, limit, split

sizes = st.integers(0, 1 << 40) | st.integers(0, 20)
ranges = st.lists(st.tuples(st.integers(0, 1 << 50), sizes), max_size=12).map(
    lambda rows: [Range("t", number, start, start + size) for number, (start, size) in enumerate(rows)]
)


@given(ranges, st.none() | st.integers(1, 50), st.none() | st.integers(1, 1 << 50))
def test_parts_cover_what_there_is_once_and_in_order(whole: list[Range], least: int | None, most: int | None) -> None:
    most = None if most is None else max(most, sum(each.size for each in whole) // 50, 1)
    parts = split(whole, least, most)
    assert all(part.size > 0 for part in parts)
    for each in whole:
        position = each.start
        for part in (part for part in parts if part.partition == each.partition):
            assert part.start == position
            position = part.end
        assert position == each.end
    if most is not None:
        assert all(part.size <= most for part in parts)


def test_large_ranges_are_cut_in_proportion_and_small_ones_stay() -> None:
    def counts(least: int | None, most: int | None, *sizes: int) -> list[int]:
        parts = split([Range("t", number, 100, 100 + size) for number, size in enumerate(sizes)], least, most)
        return [sum(part.partition == number for part in parts) for number in range(len(sizes))]

    assert counts(None, None, 5, 0, 7) == [1, 0, 1]
    assert counts(2, None, 5, 0, 7) == [1, 0, 1]
    assert counts(6, None, 10, 10) == [3, 3]
    assert counts(10, None, 1, 99) == [1, 9]
    assert counts(6, None, 100, 300) == [2, 5]  # half a part is one
    assert counts(9, None, 2) == [2]  # no more than there are
    assert counts(None, 4, 10, 4, 1) == [3, 1, 1]
    assert counts(8, 4, 10, 4) == [6, 2]


def test_a_range_of_billions_costs_no_more() -> None:
    parts = split([Range("t", 0, 0, 10**12)], 7, None)
    assert sorted(part.size for part in parts) == [142857142857] * 6 + [142857142858]


places = st.dictionaries(
    st.tuples(st.sampled_from("ab"), st.integers(0, 5)), st.tuples(st.integers(0, 1 << 50), sizes), max_size=8
)


@given(places, st.integers(1, 1 << 41))
def test_a_limit_gives_each_its_share(rows: dict[tuple[str, int], tuple[int, int]], most: int) -> None:
    starts = {place: start for place, (start, _) in rows.items()}
    ends = {place: start + size for place, (start, size) in rows.items()}
    limited = limit(starts, ends, most)
    assert limited.keys() == ends.keys()
    backlog = sum(size for _, size in rows.values())
    taken = 0
    for place, (start, size) in rows.items():
        assert start <= limited[place] <= ends[place]
        assert (limited[place] > start) == (size > 0)
        taken += limited[place] - start
        if backlog > most and size:
            assert limited[place] - start == max(most * size // backlog, 1)
    assert taken <= max(most, len(rows)) + len(rows)
    if backlog <= most:
        assert limited == ends


def test_a_partition_that_lost_its_end_takes_no_share() -> None:
    assert limit({("t", 0): 50, ("t", 1): 0}, {("t", 0): 40, ("t", 1): 100}, 10) == {("t", 0): 40, ("t", 1): 10}


def test_what_is_left_and_what_is_lost() -> None:
    wanted = [Range("t", number, 10, 20) for number in range(7)]
    wanted[5] = Range("t", 5, 30, 20)
    earliest = dict.fromkeys([("t", number) for number in range(6)], 0) | {("t", 1): 15, ("t", 2): 25}
    latest = dict.fromkeys(earliest, 20) | {("t", 2): 30, ("t", 3): 18, ("t", 4): 5}
    left, losses = clip(wanted, earliest, latest)
    filled = [(each.partition, each.start, each.end) for each in left if each.size]
    assert filled == [(0, 10, 20), (1, 15, 20), (3, 10, 18)]
    assert all(each.size >= 0 for each in left)
    assert [loss.split(": ")[0] for loss in losses] == [
        "partition 1 of topic 't' begins at offset 15, and was to be read from 10 on",
        "partition 2 of topic 't' begins at offset 25, and was to be read from 10 on",
        "partition 3 of topic 't' ends at offset 18, and was to be read from 10 to 20",
        "partition 4 of topic 't' ends at offset 5, and was to be read from 10 to 20",
        "partition 5 of topic 't' ends at offset 20, and was to be read from 30 on",
        "partition 6 of topic 't' is gone, and offset 10 was to be read next",
    ]
    assert all("failOnDataLoss" in loss for loss in losses)
    assert "5 offsets were removed" in losses[0]
