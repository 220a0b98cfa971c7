"""The checker of what coordinators said finds what it is there for."""

import pytest

from group_history import Answer, check, count_ownerships

G = "g"


def said(broker: str, kind: str, begun: float, received: float | None = None, **more: object) -> Answer:
    return Answer(G, broker, kind, begun, begun + 0.5 if received is None else received, **more)  # type: ignore[arg-type]


# One broker has the group, another takes it over, the first gets it back; some answers overlap.
GOOD = [
    said("a", "join", 1, generation=1, leader="x"),
    said("a", "beat", 2, generation=1),
    said("a", "commit", 3, 9, offset=10),  # it stood still before the answer was out
    said("b", "fetch", 5, offset=10),
    said("b", "join", 6, generation=2, leader="y"),
    said("b", "commit", 7, offset=20),
    said("b", "commit", 8, offset=30, error="COORDINATOR_NOT_AVAILABLE"),
    said("b", "fetch", 9, offset=30),
    said("a", "commit", 10, offset=40, error="NOT_COORDINATOR"),
    said("a", "join", 10.2, 12, generation=2, leader="y"),
    said("b", "fetch", 11, 11.5, offset=30),
    said("a", "commit", 13, offset=50),
    said("a", "fetch", 14, offset=50),
]


def test_a_good_history_is_good() -> None:
    check(GOOD, {G: 3})
    assert count_ownerships(GOOD) == 3
    assert count_ownerships([]) == 0


def test_a_commit_that_another_broker_has_replaced_may_be_seen_until_it_is_refused() -> None:
    """It was stored, its answer was late, and nobody can tell any more."""
    late = said("a", "commit", 3.5, 9, offset=15, error="NOT_COORDINATOR")
    seen = [each for each in GOOD if each.offset != 10]
    check([*seen, late, said("b", "fetch", 5, offset=15)], {G: 3})
    with pytest.raises(AssertionError, match="was refused"):
        check([*seen, late, said("b", "fetch", 9.2, offset=15)], {G: 3})


@pytest.mark.parametrize(
    ("more", "rule"),
    [
        (said("b", "fetch", 15, offset=50), "4 ownerships"),
        (said("a", "beat", 15, generation=1), "comes after"),
        (said("a", "join", 10, 12, generation=2, leader="z"), "one generation"),
        (said("a", "fetch", 15, offset=60), "nobody has committed"),
        (said("a", "fetch", 15, offset=40), "was refused"),
        (said("a", "fetch", 15, offset=20), "does not show"),
        (said("a", "fetch", 15), "does not show"),
        (said("a", "fetch", 13.2, 13.4, offset=10), "goes back"),
    ],
)
def test_each_broken_rule_is_found(more: Answer, rule: str) -> None:
    with pytest.raises(AssertionError, match=rule):
        check([*GOOD, more], {G: 3})
