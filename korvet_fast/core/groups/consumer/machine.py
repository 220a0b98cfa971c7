"""How a member of the consumer protocol gets from what it has to what it is to have, as a table. Pure, and complete.

Source: KIP-848, and what Kafka's coordinator does where it is silent. `korvet_fast.core.groups.consumer.group` finds
out what is the case with each heartbeat, and carries the acts out.
"""

from enum import Enum
from typing import Final, NamedTuple


class GroupState(Enum):
    """Kafka's states of a group, by Kafka's names."""

    EMPTY = "Empty"
    ASSIGNING = "Assigning"  # something changed, and the next heartbeat makes a new target
    RECONCILING = "Reconciling"  # not all members have what they are to have
    STABLE = "Stable"
    DEAD = "Dead"  # being deleted


class Stage(Enum):
    """Where a member is on its way to the target, by Kafka's names."""

    STABLE = "Stable"
    UNREVOKED = "UnrevokedPartitions"  # it was asked to give up partitions
    UNRELEASED = "UnreleasedPartitions"  # it waits for partitions that others have to give up


class Finding(Enum):
    """What a heartbeat finds."""

    SETTLED = "nothing has changed"
    HOLDS = "still has what it was asked to give up"
    EXCESS = "has partitions that it is not to have"
    WAITS = "others have partitions that it is to have"
    WHOLE = "all that it is to have is free"


class Act(Enum):
    """What is done about it."""

    REPEAT = "told to go on"
    REVOKE = "keeps its epoch, told to give them up"
    ADVANCE = "new epoch, told what is free of its target"
    COMPLETE = "new epoch, told its whole target"


class Step(NamedTuple):
    """The act, and the member's stage after it."""

    act: Act
    then: Stage


_REVOKE = Step(Act.REVOKE, Stage.UNREVOKED)
_ADVANCE = Step(Act.ADVANCE, Stage.UNRELEASED)
_COMPLETE = Step(Act.COMPLETE, Stage.STABLE)
_MOVES = {Finding.EXCESS: _REVOKE, Finding.WAITS: _ADVANCE, Finding.WHOLE: _COMPLETE}

TABLE: Final[dict[tuple[Stage, Finding], Step]] = {
    (stage, finding): step for stage in Stage for finding, step in _MOVES.items()
} | {
    (Stage.STABLE, Finding.SETTLED): Step(Act.REPEAT, Stage.STABLE),
    (Stage.UNREVOKED, Finding.HOLDS): Step(Act.REPEAT, Stage.UNREVOKED),
}
