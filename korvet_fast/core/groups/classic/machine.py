"""The classic protocol as a table: what each event means in each state of a group. Pure, and complete.

Source: KIP-62 (rebalance timeout), KIP-134 (initial delay), KIP-345 (static members), KIP-394 (member id required),
and what Kafka's coordinator does where they are silent. `ClassicGroup` carries the acts out.
"""

from enum import Enum
from typing import Final, NamedTuple

from korvet_fast.errors import NONE, Errors


class ClassicGroupState(Enum):
    """The states of a group, by Kafka's names."""

    EMPTY = "Empty"
    PREPARING = "PreparingRebalance"  # members join
    COMPLETING = "CompletingRebalance"  # the leader makes the assignment
    STABLE = "Stable"
    DEAD = "Dead"  # being deleted


class Event(Enum):
    """An event of a group. Requests of unknown members, or of other generations, never become events."""

    JOIN_NEW = "newcomer joins"
    JOIN_CHANGED = "member joins with other protocols"
    JOIN_LEADER = "leader joins as before"
    JOIN_FOLLOWER = "follower joins as before"
    JOIN_RETURNED = "static member is back"  # under a new id, and the choice of protocol stays
    SYNC_LEADER = "leader syncs"
    SYNC_FOLLOWER = "follower syncs"
    HEARTBEAT = "heartbeat"
    COMMIT = "member commits"
    COMMIT_OUTSIDE = "commit from outside of the group"  # by a client that assigns itself, or an administrator
    LOST = "member left or expired"  # or did not sync in time
    FORMED = "all joined, or time is over"
    EMPTIED = "nobody is left"
    DELETED = "group deleted"


class Act(Enum):
    """The coordinator's actions on an event, and its answers."""

    DELAY_JOIN = "answered when the group has formed"
    REPEAT = "answered with the present generation"
    REPLACE = "takes the old one's place and assignment"
    FORM = "new generation, joins answered"
    CLEAR = "new generation, without anybody"
    ASSIGN = "assignment kept, syncs answered"
    DELAY_SYNC = "answered when the leader has synced"
    GIVE = "answered with the assignment"
    GO_ON = "no error"
    WAIT = "the others are waited for"
    REGROUP = "everybody has to join"
    REMOVE = "its offsets go too"
    REJOIN = Errors.REBALANCE_IN_PROGRESS
    STRANGER = Errors.UNKNOWN_MEMBER_ID
    OCCUPIED = Errors.NON_EMPTY_GROUP
    GONE = Errors.COORDINATOR_NOT_AVAILABLE

    @property
    def error(self) -> Errors:
        """The error that is answered; `NONE` if the act is none."""
        value = self.value
        return value if isinstance(value, Errors) else NONE


# Stored before the answer goes out. Everything else can be lost with the process.
STORED: Final = frozenset({Act.REPLACE, Act.FORM, Act.CLEAR, Act.ASSIGN, Act.REMOVE})


class Step(NamedTuple):
    """The act, and the state after it. All members have to join again once the group enters `PREPARING`."""

    act: Act
    then: ClassicGroupState


_E, _P, _C, _S = (
    ClassicGroupState.EMPTY,
    ClassicGroupState.PREPARING,
    ClassicGroupState.COMPLETING,
    ClassicGroupState.STABLE,
)
_A = Act
_Row = tuple["tuple[Act, ClassicGroupState] | None", ...]

# For each event: the step in Empty, PreparingRebalance, CompletingRebalance and Stable; None where it cannot happen.
_ROWS: Final[dict[Event, _Row]] = {
    Event.JOIN_NEW: ((_A.DELAY_JOIN, _P), (_A.DELAY_JOIN, _P), (_A.DELAY_JOIN, _P), (_A.DELAY_JOIN, _P)),
    Event.JOIN_CHANGED: (None, (_A.DELAY_JOIN, _P), (_A.DELAY_JOIN, _P), (_A.DELAY_JOIN, _P)),
    Event.JOIN_LEADER: (None, (_A.DELAY_JOIN, _P), (_A.REPEAT, _C), (_A.DELAY_JOIN, _P)),
    Event.JOIN_FOLLOWER: (None, (_A.DELAY_JOIN, _P), (_A.REPEAT, _C), (_A.REPEAT, _S)),
    Event.JOIN_RETURNED: (None, (_A.DELAY_JOIN, _P), (_A.DELAY_JOIN, _P), (_A.REPLACE, _S)),
    Event.SYNC_LEADER: (None, (_A.REJOIN, _P), (_A.ASSIGN, _S), (_A.GIVE, _S)),
    Event.SYNC_FOLLOWER: (None, (_A.REJOIN, _P), (_A.DELAY_SYNC, _C), (_A.GIVE, _S)),
    Event.HEARTBEAT: (None, (_A.REJOIN, _P), (_A.GO_ON, _C), (_A.GO_ON, _S)),
    Event.COMMIT: (None, (_A.GO_ON, _P), (_A.REJOIN, _C), (_A.GO_ON, _S)),
    Event.COMMIT_OUTSIDE: ((_A.GO_ON, _E), (_A.STRANGER, _P), (_A.STRANGER, _C), (_A.STRANGER, _S)),
    Event.LOST: (None, (_A.WAIT, _P), (_A.REGROUP, _P), (_A.REGROUP, _P)),
    Event.FORMED: (None, (_A.FORM, _C), None, None),
    Event.EMPTIED: (None, (_A.CLEAR, _E), None, None),
    Event.DELETED: ((_A.REMOVE, ClassicGroupState.DEAD), (_A.OCCUPIED, _P), (_A.OCCUPIED, _C), (_A.OCCUPIED, _S)),
}

TABLE: Final[dict[tuple[ClassicGroupState, Event], Step]] = {
    (state, event): Step(*step)
    for event, row in _ROWS.items()
    for state, step in zip((_E, _P, _C, _S), row, strict=True)
    if step is not None
} | {
    (ClassicGroupState.DEAD, event): Step(Act.GONE, ClassicGroupState.DEAD)
    for event in Event
    if event not in (Event.FORMED, Event.EMPTIED)
}
