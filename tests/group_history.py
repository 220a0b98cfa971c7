"""Brokers' answers to members of groups, with times: the rules that hold however many believe they coordinate."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from itertools import combinations
from typing import NamedTuple

# After these nobody knows whether a commit was stored: it may be read, and need not be.
UNKNOWN = {"COORDINATOR_NOT_AVAILABLE", "REQUEST_TIMED_OUT"}
REPLACED = "NOT_COORDINATOR"
NOTHING = -1  # what is fetched where nothing was committed
ALWAYS = float("-inf")


class Answer(NamedTuple):
    """One request and what became of it. Times are monotonic seconds, of one machine.

    `begun`: it was carried out no earlier (the test knows while which times a broker stood still). `member`: whose the
    generation is, "" if it is the whole group's. `leader`: named in a join's answer. `offset`: committed or fetched;
    no two commits of a group have the same.
    """

    group: str
    broker: str
    kind: str  # join, sync, beat, commit, fetch
    begun: float
    received: float
    error: str = ""
    generation: int = -1
    member: str = ""
    leader: str = ""
    offset: int = NOTHING


def before(first: Answer, second: Answer) -> bool:
    """Whether one was over when the other began."""
    return first.received < second.begun


def count_ownerships(answers: Iterable[Answer]) -> int:
    """How often at least a group was handed over, and once more, if one broker at a time said these.

    A heartbeat is answered well also by one who is still loading the group, so that it says nothing about this.
    """
    told = sorted((each for each in answers if not each.error and each.kind != "beat"), key=lambda each: each.received)

    def count(last: Answer) -> int:
        number = 1
        for each in told:
            if each.broker != last.broker and before(last, each):
                last, number = each, number + 1
        return number

    return max((count(first) for first in {each.broker: each for each in reversed(told)}.values()), default=0)


def check(answers: Iterable[Answer], takings: Mapping[str, int]) -> None:
    """Raises AssertionError with the rules broken. `takings`: how often the store let somebody take each group."""
    groups: defaultdict[str, list[Answer]] = defaultdict(list)
    for each in answers:
        groups[each.group].append(each)
    broken: list[str] = []
    for group, rows in groups.items():
        if (ownerships := count_ownerships(rows)) > takings[group]:
            broken.append(f"{group}: {ownerships} ownerships, and it was taken {takings[group]} times")
        broken += [*find_stale(rows), *_named_twice(rows), *_misread(rows), *_gone_back(rows)]
    assert not broken, f"{len(broken)} rules broken:\n" + "\n".join(broken[:20])


def find_stale(rows: list[Answer]) -> Iterable[str]:
    """Generations that were told do not go back."""
    newest: dict[str, Answer] = {}  # by member: the largest generation that was told so far
    told = [each for each in rows if not each.error and each.generation >= 0]
    over = sorted(told, key=lambda each: each.received)
    index = 0
    for each in sorted(told, key=lambda each: each.begun):
        while index < len(over) and before(over[index], each):
            done = over[index]
            if done.generation > newest.get(done.member, done._replace(generation=-1)).generation:
                newest[done.member] = done
            index += 1
        if each.member in newest and each.generation < newest[each.member].generation:
            yield f"{each} comes after {newest[each.member]}"


def _named_twice(rows: list[Answer]) -> Iterable[str]:
    """A generation has one leader."""
    leaders: dict[int, Answer] = {}
    for each in rows:
        if not each.error and each.leader:
            first = leaders.setdefault(each.generation, each)
            if first.leader != each.leader:
                yield f"{first} and {each} are two of one generation"


def _commits(rows: list[Answer]) -> dict[int, Answer]:
    nothing = Answer(rows[0].group, "", "commit", ALWAYS, ALWAYS)
    return {each.offset: each for each in [nothing, *rows] if each.kind == "commit"}


def _misread(rows: list[Answer]) -> Iterable[str]:
    """A fetched offset was committed, not refused, and not overwritten for certain before the fetch began.

    A coordinator that does not know whether its commit was stored, and finds it overwritten by the next one, refuses
    it; who asked meanwhile may have seen it (Kafka answers so too where a leader changes before an append is durable).
    """
    commits = _commits(rows)
    stored = [each for each in commits.values() if not each.error]
    for fetch in rows:
        if fetch.kind != "fetch" or fetch.error:
            continue
        found = commits.get(fetch.offset)
        if found is None or before(fetch, found):
            yield f"{fetch} shows what nobody has committed"
        elif found.error and found.error not in UNKNOWN and (found.error != REPLACED or before(found, fetch)):
            yield f"{fetch} shows what was refused: {found}"
        else:
            lost = [each for each in stored if before(found, each) and before(each, fetch) and not found.error]
            yield from (f"{fetch} does not show {each}" for each in lost[-1:])


def _gone_back(rows: list[Answer]) -> Iterable[str]:
    """Nobody sees an older commit after somebody has seen a newer one."""
    commits = _commits(rows)
    seen = [each for each in rows if each.kind == "fetch" and not each.error and each.offset in commits]
    for one, other in combinations(sorted(seen, key=lambda each: each.received), 2):
        older, newer = commits[other.offset], commits[one.offset]
        over = before(older, newer) or before(older, one)  # then it had been overwritten when `one` saw the other
        if older is not newer and before(one, other) and over and not older.error:
            yield f"{other} goes back behind {one}"
