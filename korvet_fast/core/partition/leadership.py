"""Whether this broker leads a partition, as a table: what each event means in each state. Pure, and complete.

`PartitionLeader` carries the acts out. The store's fencing token, not this table, keeps two leaders apart.
"""

from enum import Enum
from typing import Final, NamedTuple

from korvet_fast.errors import Errors


class LeadershipState(Enum):
    """This broker's role for the partition."""

    NOT_LEADER = "NotLeader"
    ACQUIRING = "Acquiring"  # the store is asked for the log
    LEADER = "Leader"
    UNDER_MIN_ISR = "UnderMinIsr"  # this broker leads, and appends are copied to fewer than min.insync.replicas
    RECOVERING = "Recovering"  # this broker leads, and asks the store where the log ends
    REACQUIRING = "Reacquiring"  # this broker led, and asks the store whether it still leads
    DELETED = "Deleted"


class Event(Enum):
    """An event of the partition."""

    ACQUIRE = "this broker is to lead"
    ACQUIRED = "log acquired"
    ACQUIRE_FAILED = "log not acquired"  # yet: a failure of the store, which may pass
    APPEND_FAILED = "append failed"
    DISOWNED = "append refused by the store"  # another program wrote, or the store does not know of an acquired log
    COPIES_MISSING = "too few copies"  # all that was appended is in the log, and cannot be kept as often as it should
    HISTORY_CHANGED = "history changed"  # the store's: a failover, a restart that lost records
    RECOVERED = "end of the log found"  # and everything below it is durable
    FENCED = "acquired by another broker"
    RESIGNED = "leadership given up"
    DELETED = "topic deleted"


class Operation(Enum):
    """An operation on a partition, allowed or not."""

    READ = "fetch, list offsets, delete records, retention"
    APPEND = "produce with acks=all"
    APPEND_HERE = "produce with acks=0 or 1"  # promises nothing of copies
    TELL_EPOCHS = "end of a leader epoch"
    SAVE = "save the snapshot"


class Act(Enum):
    """An action that an event causes."""

    NOTHING = "-"
    ASK_FOR_LOG = "the store is asked for the log"
    START = "clients are served"
    ASK_FOR_END = "the store is asked for the end"
    QUEUE = "waits in the recovery queue"  # until the broker knows what it still leads
    WAIT = "waits for copies"
    RESUME = "appends go on"
    LET_GO = "waiting fetches are answered, producers forgotten"
    BUG = "cannot happen"


class Step(NamedTuple):
    """The act, and the state after it."""

    act: Act
    then: LeadershipState


_N, _A, _L, _U, _R, _Q, _D = LeadershipState
_Row = tuple[tuple[Act, LeadershipState], ...]
_NOTHING: Final[_Row] = tuple((Act.NOTHING, state) for state in LeadershipState)
_BUG: Final[_Row] = tuple((Act.BUG, state) for state in LeadershipState)


def _when_leading(act: Act, then: LeadershipState) -> _Row:
    """An event that means something only where this broker leads; `then` for all four states."""
    return (*_NOTHING[:2], *[(act, then)] * 4, _NOTHING[6])


# For each event: the step in NotLeader, Acquiring, Leader, UnderMinIsr, Recovering, Reacquiring and Deleted.
_ROWS: Final[dict[Event, _Row]] = {
    Event.ACQUIRE: ((Act.ASK_FOR_LOG, _A), *_NOTHING[1:]),
    # While the store is asked for the log, leadership may be given up, or the topic deleted.
    Event.ACQUIRED: (_NOTHING[0], (Act.START, _L), *_BUG[2:6], _NOTHING[6]),
    Event.ACQUIRE_FAILED: (_NOTHING[0], (Act.ASK_FOR_END, _R), *_BUG[2:6], _NOTHING[6]),
    # An append that was under way when this broker stopped leading may fail later: that changes nothing.
    Event.APPEND_FAILED: (*_NOTHING[:2], *[(Act.ASK_FOR_END, _R)] * 3, (Act.ASK_FOR_END, _Q), _NOTHING[6]),
    Event.DISOWNED: _when_leading(Act.ASK_FOR_END, _Q),
    # The store says so of records that it has stored; so this broker leads, and knows where the log ends.
    Event.COPIES_MISSING: _when_leading(Act.WAIT, _U),
    Event.HISTORY_CHANGED: _when_leading(Act.QUEUE, _Q),
    Event.RECOVERED: (*_BUG[:3], *[(Act.RESUME, _L)] * 3, _BUG[6]),
    Event.FENCED: _when_leading(Act.LET_GO, _N),
    Event.RESIGNED: (_NOTHING[0], *[(Act.LET_GO, _N)] * 5, _NOTHING[6]),
    Event.DELETED: (*[(Act.LET_GO, _D)] * 6, _NOTHING[6]),
}

TABLE: Final[dict[tuple[LeadershipState, Event], Step]] = {
    (state, event): Step(*step)
    for event, row in _ROWS.items()
    for state, step in zip(LeadershipState, row, strict=True)
}

_ALL: Final = frozenset(Operation)
ALLOWS: Final[dict[LeadershipState, frozenset[Operation]]] = {
    # A save under way: compare-and-set lets it lose to the new leader's.
    LeadershipState.NOT_LEADER: frozenset({Operation.SAVE}),
    LeadershipState.ACQUIRING: frozenset({Operation.SAVE}),
    LeadershipState.LEADER: _ALL,
    LeadershipState.UNDER_MIN_ISR: _ALL - {Operation.APPEND},
    LeadershipState.RECOVERING: _ALL - {Operation.APPEND, Operation.APPEND_HERE},
    LeadershipState.REACQUIRING: _ALL - {Operation.APPEND, Operation.APPEND_HERE, Operation.TELL_EPOCHS},
    LeadershipState.DELETED: frozenset(),
}

# The errors of operations that are not allowed. While the partition recovers, the failure itself, if it says more.
ERRORS: Final[dict[LeadershipState, Errors]] = {
    LeadershipState.NOT_LEADER: Errors.NOT_LEADER_OR_FOLLOWER,
    LeadershipState.ACQUIRING: Errors.NOT_LEADER_OR_FOLLOWER,
    LeadershipState.LEADER: Errors.NONE,
    LeadershipState.UNDER_MIN_ISR: Errors.NOT_ENOUGH_REPLICAS,
    LeadershipState.RECOVERING: Errors.KAFKA_STORAGE_ERROR,
    LeadershipState.REACQUIRING: Errors.NOT_LEADER_OR_FOLLOWER,
    LeadershipState.DELETED: Errors.UNKNOWN_TOPIC_OR_PARTITION,
}


class Refusal(NamedTuple):
    """The error that an operation is answered with: its name, and a sentence."""

    error: Errors
    detail: str


class Leadership:
    """The present state of one partition.

    `refusal`: why appends with acks=all are refused, and mostly all others too; None in `LEADER`, and only there.
    `leads`: whether reads are answered. `epoch`: the leader epoch, -1 before the log was acquired for the first time.
    `steps` counts the events: knowledge from before the last step may be out of date. Appends and reads look at
    the attributes, so they are plain.
    """

    __slots__ = ("epoch", "leads", "refusal", "state", "steps")

    def __init__(self, name: str) -> None:
        self.state = LeadershipState.NOT_LEADER
        self.leads = False
        self.refusal: Refusal | None = Refusal(ERRORS[LeadershipState.NOT_LEADER], f"this broker does not lead {name}")
        self.epoch = -1
        self.steps = 0

    def on(self, event: Event, detail: str = "", error: Errors = Errors.NONE) -> Act:
        """Take the step; returns the act that it causes.

        `detail`: the text that clients get from now on. The reason to reacquire a log stays the first one. `error`: the
        name of the failure's error, if it says more than the state's. Raises `RuntimeError` for what cannot happen.
        """
        before = self.state
        act, state = TABLE[before, event]
        if act is Act.BUG:
            raise RuntimeError(f"a partition that is {before.value} cannot meet: {event.value}")
        if act is Act.NOTHING:
            return act
        self.steps += 1
        self.state = state
        self.leads = Operation.READ in ALLOWS[state]
        if state is LeadershipState.LEADER:
            self.refusal = None
        elif detail and not (before is state is LeadershipState.REACQUIRING):
            self.refusal = Refusal(error if state is LeadershipState.RECOVERING and error else ERRORS[state], detail)
        return act

    @property
    def knows_end(self) -> bool:
        """Whether this broker leads and it is certain where the log ends."""
        return self.state is LeadershipState.LEADER or self.state is LeadershipState.UNDER_MIN_ISR

    def may(self, operation: Operation) -> bool:
        """Whether the present state allows it."""
        return operation in ALLOWS[self.state]
