"""The rules of committed offsets, each by its name: what is broken comes out as sentences."""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator

from group_history import UNKNOWN, Answer, find_stale
from journal import Commit, Journal

Broken = Iterator[str]
GroupPartition = tuple[str, int]  # group, partition


def find_early(run: Journal) -> Broken:
    """A member commits no more than it was delivered, or than its group may have committed."""
    for commits in _by_group_partition(run).values():
        for commit in commits:
            claims = run.read[commit.member][: commit.seen]
            delivered = max((offset + 1 for (where, offset), _ in claims if where == commit.partition), default=0)
            if commit.answer.error or commit.offset <= delivered:
                continue
            maybe = [each for each in commits if each is not commit and each.answer.error in {"", *UNKNOWN}]
            begun = [each.offset for each in maybe if each.answer.begun < commit.answer.received]
            if commit.offset > max(begun, default=0):
                place = (commit.partition, commit.offset)
                yield f"{commit.member} has committed {place}, and had read up to {delivered}"


def find_back(run: Journal) -> Broken:
    """What a group committed is not taken back by a commit."""
    for commits in _by_group_partition(run).values():
        highest_before = _highest(commits)
        for commit in commits:
            if not commit.answer.error and commit.offset < (earlier := highest_before(commit.answer.begun)):
                yield f"{commit.member} has committed {commit.offset} of {commit.partition} behind {earlier}"


def find_lost(run: Journal) -> Broken:
    """A position that is told was committed, and no commit that was answered before is above it."""
    places = _by_group_partition(run)
    for position in run.positions:
        commits = places[position.answer.group, position.partition]
        known = {each.offset for each in commits if each.answer.error in {"", *UNKNOWN}}
        if position.offset >= 0 and position.offset not in known:
            yield f"{position} is what nobody has committed"
        if position.offset < (earlier := _highest(commits)(position.answer.begun)):
            yield f"{position} does not show {earlier}"


def find_unfenced(run: Journal) -> Broken:
    """Who is of an older generation than somebody was told is refused."""
    groups: defaultdict[str, list[Answer]] = defaultdict(list)
    for answer in [*run.answers, *(commit.answer for commit in run.commits)]:
        groups[answer.group].append(answer)
    for answers in groups.values():
        yield from find_stale(answers)


COMMIT_RULES: dict[str, Callable[[Journal], Broken]] = {
    "commit above delivered": find_early,
    "commit back": find_back,
    "commit lost": find_lost,
    "not fenced": find_unfenced,
}


def _by_group_partition(run: Journal) -> defaultdict[GroupPartition, list[Commit]]:
    places: defaultdict[GroupPartition, list[Commit]] = defaultdict(list)
    for commit in list(run.commits):  # somebody may be committing
        places[commit.answer.group, commit.partition].append(commit)
    return places


def _highest(commits: Iterable[Commit]) -> Callable[[float], int]:
    """By time, the highest offset of those that had been answered well before; -1: there was none."""
    times, highest = [], [-1]
    for received, offset in sorted((each.answer.received, each.offset) for each in commits if not each.answer.error):
        times.append(received)
        highest.append(max(highest[-1], offset))
    return lambda at: highest[bisect_left(times, at)]
