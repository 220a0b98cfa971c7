"""Patterns of consumers: what they may cost, whatever names there are."""

import time
from random import Random

import pytest

from korvet_fast._native import match_names
from korvet_fast.errors import CodecError

LONG = [f"{'n' * 244}{at:05}" for at in range(500)]
NORMAL = [f"orders.region-{at % 7}.table-{at:05}" for at in range(20_000)]
MIXED = ["".join(Random(at).choices("ab", k=25)) for at in range(20_000)]


def seconds(pattern: str, names: list[str]) -> float:
    """The processor time that this pattern takes, answered or refused."""
    begin = time.thread_time()
    try:
        match_names(pattern, names)
    except CodecError as error:
        assert error.code == "BAD_PATTERN"
    return time.thread_time() - begin


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("(?:.?){3000}z", LONG),
        ("(?:.?){2000}z", LONG),
        ("(?:a|b)*a(?:a|b){16}", MIXED),
        ("(?:(?:a?){2000}[ab])*a[ab]{12}", MIXED),
        (r"(?:(?:[^\x00-\xff]?){2000}[ab])*a[ab]{12}", MIXED),
        ("(?:.?){40}.*a.{12}", MIXED),
        ("(?:.*){2000}a", NORMAL),
    ],
)
def test_finding_2_7_no_pattern_takes_long(pattern: str, names: list[str]) -> None:
    assert seconds(pattern, names) < 0.2  # a tenth of that on a machine that does nothing else


def test_finding_2_7_what_honest_patterns_need_is_allowed() -> None:
    assert match_names("|".join(NORMAL[:300]), NORMAL) == NORMAL[:300]
    assert match_names(r"orders\.region-3\..*", NORMAL) == NORMAL[3::7]
    assert match_names(".*", NORMAL) == NORMAL
    assert match_names("(?x) n+ \\d{5} # all", LONG) == LONG


def test_the_names_are_the_objects_given() -> None:
    names = ["orders.ä", "other", "orders." + str(5)]
    assert [id(name) for name in match_names("orders.*", names)] == [id(names[0]), id(names[2])]
