"""The checker of histories finds what it is there for."""

from collections.abc import Callable

import pytest

from history import History, Sent

Log = dict[int, list[tuple[int, bytes]]]


def good() -> tuple[History, Log]:
    """Five records of one idempotent producer in one partition, all acknowledged and read."""
    history = History()
    for number in range(5):
        value = Sent("a", number)
        history.note_sent(value, 0, once=True)
        history.note_acknowledged(value, (0, number * 10))
        history.note_read("reader", (0, number * 10), b"a:%d" % number)
    return history, {0: [(number * 10, b"a:%d" % number) for number in range(5)]}


def lose(history: History, log: Log) -> None:
    del log[0][4], history.read["reader"][4]


def double(history: History, log: Log) -> None:
    log[0].append((50, b"a:4"))


def swap(history: History, log: Log) -> None:
    log[0][0:2] = [(0, b"a:1"), (10, b"a:0")]
    history.acknowledged.clear()
    history.read.clear()


def reuse(history: History, log: Log) -> None:
    history.note_read("early", (0, 40), b"b:0")


def go_back(history: History, log: Log) -> None:
    history.note_read("reader", (0, 0), b"a:0")


def skip(history: History, log: Log) -> None:
    del history.read["reader"][2]


def move(history: History, log: Log) -> None:
    log[0][4] = (45, b"a:4")
    del history.read["reader"][4]


def stray(history: History, log: Log) -> None:
    log[0].append((50, b"b:0"))


@pytest.mark.parametrize(
    ("harm", "words"),
    [
        (lose, "acknowledged at (0, 40), is lost"),
        (double, "stands at [40, 50]"),
        (swap, "a:0 comes behind a:1"),
        (reuse, "(0, 40) was"),
        (go_back, "went back"),
        (skip, "did not see"),
        (move, "stands at [45]"),
        (stray, "where nobody sent it"),
    ],
)
def test_each_broken_rule_is_named(harm: Callable[[History, Log], None], words: str) -> None:
    history, log = good()
    history.check(log)
    harm(history, log)
    with pytest.raises(AssertionError) as found:
        history.check(log)
    assert words in str(found.value)


def test_a_loss_that_was_reported_is_returned() -> None:
    history, log = good()
    lose(history, log)
    assert history.check(log, may_lose=[(0, 40)]) == {Sent("a", 4)}


def test_what_was_reported_as_lost_may_come_back_and_a_copy_of_it_may_stand_elsewhere() -> None:
    for harm in (skip, move):
        history, log = good()
        harm(history, log)
        assert history.check(log, may_lose=[(0, 20), (0, 40)]) == set()
        with pytest.raises(AssertionError):
            history.check(log, may_lose=[(0, 10)])


def test_what_was_refused_for_good_is_not_there() -> None:
    history, log = good()
    history.note_sent(Sent("b", 0), 0, once=False)
    history.note_refused(Sent("b", 0), "no room")
    history.check(log, never=True)
    log[0].append((50, b"b:0"))
    with pytest.raises(AssertionError, match="was refused"):
        history.check(log, never=True)
