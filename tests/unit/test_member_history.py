"""The checker of what members told finds what it is there for."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from counts import FILE
from member_history import EVER, check_members

Said = list[tuple[float, dict[str, Any]]]


def play(*members: Said, ended: tuple[float, ...] = (), found: int | None = None) -> Any:
    """A scene with ten records in partition 0, and members that said this. `found`: what is committed at the end."""
    ends = [*ended, *[EVER] * len(members)]
    told = [
        SimpleNamespace(
            client=f"m{number}", times=[at for at, _ in said], said=[line for _, line in said], ended_at=end
        )
        for number, (said, end) in enumerate(zip(members, ends, strict=False))
    ]
    positions = [] if found is None else [(20.0, 21.0, {0: found})]
    sent = {(0, offset) for offset in range(10)}
    return SimpleNamespace(members=told, sent=sent, group="g", positions=positions, explain=lambda: "")


def reads(at: float, *offsets: int) -> Said:
    return [(at, {"read": [0, offset]}) for offset in offsets]


ASSIGNED: dict[str, Any] = {"assigned": [0]}
REVOKED: dict[str, Any] = {"revoked": [0]}
FIRST: Said = [(1, ASSIGNED), *reads(2, 0, 1, 2), (3, {"committed": {"0": 3}}), (4, REVOKED)]
SECOND: Said = [(5, ASSIGNED), *reads(6, 3, 4), (7, {"committed": {"0": 5}})]


def test_a_good_history_is_good() -> None:
    check_members(play(FIRST, SECOND, found=5))
    check_members(play(FIRST[:-1], SECOND, ended=(4.5,)))  # it was killed
    check_members(play(FIRST, [(5, ASSIGNED), (6, {"committed": {"0": 3}})], found=3))  # where the group was


@pytest.mark.parametrize(
    "first",
    [
        [(1, ASSIGNED), *reads(2, 0, 1, 2, 3, 4), (3, {"refused": "_TIMED_OUT"}), (4, REVOKED)],
        [(1, ASSIGNED), *reads(2, 0, 1, 2, 3, 4)],  # killed before it was answered
    ],
)
def test_a_commit_of_which_nobody_knows_may_have_been_stored(first: Said) -> None:
    check_members(play(first, [(5, ASSIGNED), (6, {"committed": {"0": 5}})], ended=(4.5,), found=5))


@pytest.mark.parametrize(("found", "rule"), [(3, "does not show 5"), (-1, "does not show 5"), (6, "nobody has")])
def test_a_position_that_the_group_does_not_have_is_found(found: int, rule: str) -> None:
    with pytest.raises(AssertionError, match=f"commit lost: .*{rule}"):
        check_members(play(FIRST, SECOND, found=found))


def test_what_nobody_has_read_counts_as_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(FILE, str(tmp_path / "counts"))
    check_members(play(FIRST, SECOND, found=5))
    figures = json.loads((tmp_path / "counts").read_text())
    assert (figures["acknowledged"], figures["lost"]) == (10, 5)


def test_a_commit_of_a_generation_that_is_over_is_found() -> None:
    def of(at: float, offset: int, generation: int) -> Said:
        return [*reads(at, offset), (at + 1, {"committed": {"0": offset + 1}, "generation": generation})]

    one, other = [(1.0, ASSIGNED), *of(2, 0, 4), (4.0, REVOKED)], [(5.0, ASSIGNED), *of(6, 1, 5)]
    check_members(play(one, other))
    with pytest.raises(AssertionError, match=r"not fenced: .*generation=4.* comes after .*generation=5"):
        check_members(play([*one, (8.0, ASSIGNED), *of(9, 2, 4)], [*other, (7.5, REVOKED)]))


@pytest.mark.parametrize(
    ("second", "rule"),
    [
        ([(3.5, ASSIGNED), *SECOND[1:]], "while 0"),
        (SECOND[1:], "does not have"),
        ([(5, ASSIGNED), *reads(6, 3, 5)], "gaps"),
        ([(5, ASSIGNED), *reads(6, 4, 5)], "nobody has read 3"),
        ([(5, ASSIGNED), *reads(6, 2, 3)], "but 3 was committed"),
        ([*SECOND, (8, {"committed": {"0": 6}})], "had read up to 5"),
        ([(5, ASSIGNED), (6, {"committed": {"0": 4}})], "had read up to 0"),
        ([(5, ASSIGNED), (5.5, {"committed": {"0": 5}}), *reads(6, 3, 4)], "had read up to 0"),
        ([*SECOND, (8, {"committed": {"0": 4}})], "behind 5"),
        ([(5, ASSIGNED), (6, {"committed": {"0": 2}})], "behind 3"),
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
