"""The assignors of text groups: which member is to have which partitions of the group's one topic. Pure."""

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Final, TypeAlias

# Members in order, and how many partitions there are, give the partitions of each member.
Assignor: TypeAlias = Callable[[int, int], Sequence[range]]


def assign_round_robin(members: int, partitions: int) -> Sequence[range]:
    """One partition after the other to one member after the other."""
    return [range(first, partitions, members) for first in range(members)]


def assign_range(members: int, partitions: int) -> Sequence[range]:
    """Neighbouring partitions to each member, the first ones one more."""
    share, over = divmod(partitions, members)
    starts = [turn * share + min(turn, over) for turn in range(members + 1)]
    return [range(start, end) for start, end in pairwise(starts)]


DEFAULT: Final = "round_robin"
ASSIGNORS: Final[Mapping[str, Assignor]] = {DEFAULT: assign_round_robin, "range": assign_range}
