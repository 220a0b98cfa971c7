"""The checker of what members told finds what it is there for."""

from types import SimpleNamespace
from typing import Any

import pytest

from member_history import EVER, check_members

Said = list[tuple[float, dict[str, Any]]]


def play(*members: Said, ended: tuple[float, ...] = ()) -> Any:
    """A scene with ten records in partition 0, and members that said this."""
    ends = [*ended, *[EVER] * len(members)]
    told = [
        SimpleNamespace(
            client=f"m{number}", times=[at for at, _ in said], said=[line for _, line in said], ended_at=end
        )
        for number, (said, end) in enumerate(zip(members, ends, strict=False))
    ]
    return SimpleNamespace(members=told, sent={(0, offset) for offset in range(10)}, explain=lambda: "")


def reads(at: float, *offsets: int) -> Said:
    return [(at, {"read": [0, offset]}) for offset in offsets]


ASSIGNED: dict[str, Any] = {"assigned": [0]}
REVOKED: dict[str, Any] = {"revoked": [0]}
FIRST: Said = [(1, ASSIGNED), *reads(2, 0, 1, 2), (3, {"committed": {"0": 3}}), (4, REVOKED)]
SECOND: Said = [(5, ASSIGNED), *reads(6, 3, 4), (7, {"committed": {"0": 5}})]


def test_a_good_history_is_good() -> None:
    check_members(play(FIRST, SECOND))
    check_members(play(FIRST[:-1], SECOND, ended=(4.5,)))  # it was killed


@pytest.mark.parametrize(
    ("second", "rule"),
    [
        ([(3.5, ASSIGNED), *SECOND[1:]], "while 0"),
        (SECOND[1:], "does not have"),
        ([(5, ASSIGNED), *reads(6, 3, 5)], "gaps"),
        ([(5, ASSIGNED), *reads(6, 4, 5)], "nobody has read 3"),
        ([(5, ASSIGNED), *reads(6, 2, 3)], "but 3 was committed"),
        ([*SECOND, (8, {"committed": {"0": 6}})], "having read up to 5"),
        ([*SECOND, (8, {"committed": {"0": 4}})], "goes back"),
        ([*SECOND, (8, {"committed": {"1": 4}})], "commits 4 of 1"),
    ],
)
def test_each_broken_rule_is_found(second: Said, rule: str) -> None:
    with pytest.raises(AssertionError, match=rule):
        check_members(play(FIRST, second))


def test_who_was_taken_for_dead_may_believe_what_it_likes() -> None:
    scene = play(FIRST[:-1], SECOND)
    with pytest.raises(AssertionError, match="while 0"):
        check_members(scene)
    check_members(scene, expired=scene.members[:1])
