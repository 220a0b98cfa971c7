"""The checker of histories finds what it is there for, and names the rule."""

from collections.abc import Callable
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from history import History, Sent
from history_example import GONE, Log, commit, make, say, write
from history_rules import RULES
from random_history import SPOIL, RandomHistory
from twin.profile import examples

Harm = Callable[[History, Log], object]


def lose(history: History, log: Log) -> None:
    del log[0][4], history.read["reader"][4]


def lose_in_the_middle(history: History, log: Log) -> None:
    del log[0][2]


def lose_a_partition(history: History, log: Log) -> None:
    log[0].clear()


def lose_what_is_not_quite_reported(history: History, log: Log) -> None:
    del log[1][3]


def lose_what_has_no_place(history: History, log: Log) -> None:
    del log[1][-1]


def swap(history: History, log: Log) -> None:
    log[0][0:2] = [(0, b"a:1"), (10, b"a:0")]
    history.acknowledged.clear()
    history.read.clear()
    history.commits.clear()
    history.positions.clear()


def go_back_in_an_offset(history: History, log: Log) -> None:
    log[0][0:2] = log[0][1::-1]


def acknowledge_backwards(history: History, log: Log) -> None:
    for value, place in ((Sent("a", 1), (0, 20)), (Sent("a", 2), (0, 10))):
        history.acknowledged[value] = place


def store_late(history: History, log: Log) -> None:
    """A retry of b:3 that was not seen to be one, behind b:5."""
    del log[1][3]
    log[1].append((150, b"b:3"))


def move(history: History, log: Log) -> None:
    log[0][4] = (45, b"a:4")
    del history.read["reader"][4]


def take_a_place(history: History, log: Log) -> None:
    """An offset that was acknowledged and read is given to somebody else after a failover."""
    history.note_sent(Sent("late", 0), 0, once=False)
    log[0][4] = (40, b"late:0")


def acknowledge_twice_at_a_place(history: History, log: Log) -> None:
    history.acknowledged[Sent("plain", 1)] = history.acknowledged[Sent("plain", 0)]


def read_two_values(history: History, log: Log) -> None:
    history.note_read("early", (1, 40), b"plain:0")


def give_what_was_lost_to_another(history: History, log: Log) -> None:
    log[1].insert(4, (40, b"plain:2"))


def read_and_forget(history: History, log: Log) -> None:
    """It was shown before it was safe."""
    history.note_read("early", (0, 50), b"plain:4")


def read_and_lose_behind_the_report(history: History, log: Log) -> None:
    history.note_read("early", (1, 50), b"plain:0")


def go_back(history: History, log: Log) -> None:
    history.note_read("reader", (0, 0), b"a:0")


def read_again(history: History, log: Log) -> None:
    history.note_read("reader", (1, 140), b"b:5")


def skip(history: History, log: Log) -> None:
    del history.read["reader"][2]
    history.marks.clear()


def skip_many(history: History, log: Log) -> None:
    del history.read["reader"][1:4]
    history.marks.clear()


def skip_what_has_another_place(history: History, log: Log) -> None:
    log[1].insert(4, (50, b"plain:2"))


def stray(history: History, log: Log) -> None:
    log[0].append((50, b"nobody:0"))


def store_elsewhere(history: History, log: Log) -> None:
    log[0].append((50, b"plain:0"))


def read_a_phantom(history: History, log: Log) -> None:
    history.note_read("reader", (0, 50), b"nobody:0")


def acknowledge_what_nobody_sent(history: History, log: Log) -> None:
    history.note_acknowledged(Sent("nobody", 0), (0, 50))


def acknowledge_elsewhere(history: History, log: Log) -> None:
    history.acknowledged[Sent("plain", 0)] = (0, -1)


def acknowledge_again_at_another_place(history: History, log: Log) -> None:
    history.note_acknowledged(Sent("a", 4), (0, 45))


def acknowledge_and_refuse(history: History, log: Log) -> None:
    history.note_refused(Sent("a", 4), "no room")


def double(history: History, log: Log) -> None:
    log[0].append((50, b"a:4"))


def double_what_nobody_was_told(history: History, log: Log) -> None:
    history.note_sent(Sent("a", 5), 0, once=True)
    log[0] += [(50, b"a:5"), (60, b"a:5")]


def double_at_one_offset(history: History, log: Log) -> None:
    log[0].append((40, b"a:4"))


def bring_back(history: History, log: Log) -> None:
    """Reported as lost, and it never was."""
    log[1].insert(4, (40, b"b:4"))


def store_what_was_refused(history: History, log: Log) -> None:
    log[0].append((50, b"plain:3"))


def lower_the_watermark(history: History, log: Log) -> None:
    history.note_high_watermark("reader", 0, 1)


def lower_the_watermark_by_one(history: History, log: Log) -> None:
    history.note_high_watermark("reader", 0, 40)


def lower_the_watermark_below_the_loss(history: History, log: Log) -> None:
    history.note_high_watermark("reader", 1, 30)


def read_above_the_watermark(history: History, log: Log) -> None:
    history.note_high_watermark("first", 0, 20)


def commit_above(history: History, log: Log) -> None:
    commit(history, "second", (0, 41), 9, 2)


def commit_of_another_partition(history: History, log: Log) -> None:
    commit(history, "second", (1, 1), 9, 2)


def commit_before_reading(history: History, log: Log) -> None:
    commit(history, "second", (0, 41), 9, 2)
    history.note_read("second", (0, 40), b"a:4")


def commit_back(history: History, log: Log) -> None:
    commit(history, "second", (0, 11), 9, 2)


def forget_a_commit(history: History, log: Log) -> None:
    history.note_position((0, 21), say("fetch", 10))


def forget_all_commits(history: History, log: Log) -> None:
    history.note_position((0, -1), say("fetch", 10))


def show_a_refused_commit(history: History, log: Log) -> None:
    commit(history, "second", (0, 35), 9, 2, error="FENCED")
    history.note_position((0, 35), say("fetch", 10))


def accept_an_old_generation(history: History, log: Log) -> None:
    history.commits[-1] = history.commits[-1]._replace(answer=say("commit", 7, generation=1))


def accept_an_old_heartbeat(history: History, log: Log) -> None:
    history.note_answer(say("beat", 9, generation=1))


def give_an_old_generation_again(history: History, log: Log) -> None:
    history.note_answer(say("join", 9, generation=1, leader="third"))


FAULTY: list[tuple[str, str, Harm]] = [
    ("lost", "acknowledged at (0, 40), is lost", lose),
    ("lost", "acknowledged at (0, 20)", lose_in_the_middle),
    ("lost", "acknowledged at (0, 0)", lose_a_partition),
    ("lost", "acknowledged at (1, 30)", lose_what_is_not_quite_reported),
    ("lost", "acknowledged at (1, -1)", lose_what_has_no_place),
    ("reported and not lost", "(1, 40) was reported", bring_back),
    ("vanished", "at (0, 50), where nothing is now", read_and_forget),
    ("vanished", "at (1, 50), where nothing is now", read_and_lose_behind_the_report),
    ("doubled", "stands at [40, 50]", double),
    ("doubled", "stands at [50, 60]", double_what_nobody_was_told),
    ("moved", "stands at [45]", move),
    ("stray", "where nobody sent it", stray),
    ("stray", "stands in partition 0, where", store_elsewhere),
    ("stray", "reader read", read_a_phantom),
    ("refused and there", "was refused (no room)", store_what_was_refused),
    ("contradiction", "at (0, 50), where nobody", acknowledge_what_nobody_sent),
    ("contradiction", "at (0, -1), where nobody", acknowledge_elsewhere),
    ("contradiction", "and then at (0, 45)", acknowledge_again_at_another_place),
    ("contradiction", "and refused (no room)", acknowledge_and_refuse),
    ("out of order", "a:0 comes behind a:1", swap),
    ("out of order", "of partition 0 do not rise", go_back_in_an_offset),
    ("out of order", "a:2 was acknowledged at (0, 10)", acknowledge_backwards),
    ("out of order", "b:3 comes behind b:5", store_late),
    ("out of order", "of partition 0 do not rise", double_at_one_offset),
    ("reused", "(0, 40) was", take_a_place),
    ("reused", "(1, 100) was", acknowledge_twice_at_a_place),
    ("reused", "(1, 40) was", read_two_values),
    ("reused", "(1, 40) was", give_what_was_lost_to_another),
    ("went back", "reader went back in partition 0", go_back),
    ("went back", "reader went back in partition 1", read_again),
    ("skipped", "(1) of partition 0", skip),
    ("skipped", "(3) of partition 0", skip_many),
    ("skipped", "(1) of partition 1", skip_what_has_another_place),
    ("high watermark", "was told 41 of partition 0, and then 1", lower_the_watermark),
    ("high watermark", "and then 40", lower_the_watermark_by_one),
    ("high watermark", "was told 141 of partition 1, and then 30", lower_the_watermark_below_the_loss),
    ("high watermark", "no high watermark above 20", read_above_the_watermark),
    ("commit above delivered", "had read up to 31", commit_above),
    ("commit above delivered", "had read up to 0", commit_of_another_partition),
    ("commit above delivered", "(0, 41)", commit_before_reading),
    ("commit back", "committed 11 of 0 behind 31", commit_back),
    ("commit lost", "does not show", forget_a_commit),
    ("commit lost", "does not show", forget_all_commits),
    ("commit lost", "nobody has committed", show_a_refused_commit),
    ("not fenced", "comes after", accept_an_old_generation),
    ("not fenced", "comes after", accept_an_old_heartbeat),
    ("not fenced", "comes after", give_an_old_generation_again),
]


@pytest.mark.parametrize(("rule", "words", "harm"), FAULTY, ids=[harm.__name__ for _, _, harm in FAULTY])
def test_each_broken_rule_is_named(rule: str, words: str, harm: Harm) -> None:
    history, log = make()
    history.check(log, may_lose=GONE, never=True)
    harm(history, log)
    with pytest.raises(AssertionError) as found:
        history.check(log, may_lose=GONE, never=True)
    named = [line for line in str(found.value).splitlines() if line.startswith(f"{rule}: ")]
    assert any(words in line for line in named), found.value


def test_forty_histories_break_every_rule() -> None:
    assert len({harm for _, _, harm in FAULTY}) == len(FAULTY) >= 40
    assert {rule for rule, _, _ in FAULTY} == RULES.keys()


def one_producer() -> tuple[History, Log]:
    """Five records of one idempotent producer in one partition, all acknowledged and read."""
    history, log = History(), {}
    write(history, log, [f"a:{number}" for number in range(5)], 0, 0, once=True)
    return history, log


def test_a_loss_that_was_reported_is_returned() -> None:
    history, log = one_producer()
    lose(history, log)
    assert history.check(log, may_lose=[(0, 40)]) == {Sent("a", 4)}


def test_a_copy_of_what_was_reported_as_lost_may_stand_elsewhere() -> None:
    history, log = one_producer()
    move(history, log)
    assert history.check(log, may_lose=[(0, 40)]) == set()
    with pytest.raises(AssertionError):
        history.check(log)


@pytest.mark.parametrize("more", [(0, 41), (0, 50), (1, 0)])
def test_a_report_that_ends_where_nobody_was_told_of_a_record_is_false(more: tuple[int, int]) -> None:
    history, log = one_producer()
    lose(history, log)
    with pytest.raises(AssertionError, match=r"reported and not lost: .* nobody was told of a record there"):
        history.check(log, may_lose=[(0, 40), more])


def test_what_was_refused_may_be_there_where_nobody_could_know() -> None:
    history, log = make()
    store_what_was_refused(history, log)
    history.check(log, may_lose=GONE)


SEEDS = st.integers(0, 2**32 - 1)


@given(SEEDS)
@examples(150)
def test_random_good_histories_pass(seed: int) -> None:
    RandomHistory(Random(seed)).check()


def test_there_is_a_way_to_spoil_by_every_rule() -> None:
    assert SPOIL.keys() == RULES.keys()


@pytest.mark.parametrize("rule", SPOIL)
@given(SEEDS)
@examples(30)
def test_a_random_history_that_is_spoiled_once_is_found(rule: str, seed: int) -> None:
    run = RandomHistory(Random(seed))
    SPOIL[rule](run)
    with pytest.raises(AssertionError, match=rf"(?m)^{rule}: "):
        run.check()
