"""The steps of a member to its target assignment (consumer protocol), as a table. Pure, and complete.

Source: KIP-848, and what Kafka's coordinator does where the KIP is silent. `CurrentAssignments` finds the case of each
heartbeat, and carries the acts out.
"""

from enum import Enum
from typing import Final, NamedTuple


class ConsumerGroupState(Enum):
    """The states of a group, by Kafka's names."""

    EMPTY = "Empty"
    ASSIGNING = "Assigning"  # something changed, and the next heartbeat makes a new target
    RECONCILING = "Reconciling"  # some members do not have their target yet
    STABLE = "Stable"
    DEAD = "Dead"  # being deleted


class MemberState(Enum):
    """A member's progress towards the target assignment, by Kafka's names."""

    STABLE = "Stable"
    UNREVOKED = "UnrevokedPartitions"  # the member was asked to give up partitions
    UNRELEASED = "UnreleasedPartitions"  # the member waits for partitions that others have to give up


class ReconcileCase(Enum):
    """The case that the coordinator finds with a heartbeat."""

    SETTLED = "nothing has changed"
    HOLDS = "still has partitions that it was asked to give up"
    EXCESS = "has partitions outside its target"
    WAITS = "others have partitions of its target"
    WHOLE = "its whole target is free"


class Act(Enum):
    """The coordinator's actions in a case."""

    REPEAT = "told to go on"
    REVOKE = "keeps its epoch, told to give them up"
    ADVANCE = "new epoch, given the free partitions of its target"
    COMPLETE = "new epoch, told its whole target"


class Step(NamedTuple):
    """The act, and the member's state after it."""

    act: Act
    then: MemberState


_REVOKE = Step(Act.REVOKE, MemberState.UNREVOKED)
_ADVANCE = Step(Act.ADVANCE, MemberState.UNRELEASED)
_COMPLETE = Step(Act.COMPLETE, MemberState.STABLE)
_MOVES = {ReconcileCase.EXCESS: _REVOKE, ReconcileCase.WAITS: _ADVANCE, ReconcileCase.WHOLE: _COMPLETE}

TABLE: Final[dict[tuple[MemberState, ReconcileCase], Step]] = {
    (state, case): step for state in MemberState for case, step in _MOVES.items()
} | {
    (MemberState.STABLE, ReconcileCase.SETTLED): Step(Act.REPEAT, MemberState.STABLE),
    (MemberState.UNREVOKED, ReconcileCase.HOLDS): Step(Act.REPEAT, MemberState.UNREVOKED),
}
