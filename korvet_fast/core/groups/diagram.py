"""Draws the tables of both protocols: `python -m korvet_fast.core.groups.diagram`."""

from collections.abc import Iterator

from korvet_fast.core.groups.classic.machine import STORED, TABLE, ClassicGroupState, Event
from korvet_fast.core.groups.consumer import machine as consumer
from korvet_fast.core.groups.consumer.machine import MemberState, ReconcileCase

_HEAD = """\
# What happens to a consumer group

Drawn from the tables in `korvet_fast/core/groups/classic/machine.py` and `korvet_fast/core/groups/consumer/machine.py`
by `make diagrams`; do not edit this page.

## The classic protocol

Members join and sync, and one of them assigns. Requests of unknown members (UNKNOWN_MEMBER_ID), of other generations
(ILLEGAL_GENERATION) and of static members that have been replaced (FENCED_INSTANCE_ID) are refused before. What is in
**bold** is stored before the answer goes out.
"""

_CONSUMER = """\

## The consumer protocol

Members only send heartbeats, and the broker assigns (KIP-848; `group.protocol=consumer` in clients). The group's epoch
rises when a member joins or leaves, when members subscribe to other topics, and when these topics change. The next
heartbeat makes a target assignment for the new epoch. Each member goes to that target at its own pace. A partition is
given to its new owner when the old owner has said in a heartbeat that it does not have it any more, or is gone: it was
silent for `group.consumer.session.timeout.ms`, or it did not give up partitions within its own rebalance timeout.

The coordinator's case for each heartbeat, and the member's state after it. Changes are stored before the answer goes
out.
"""

_ERRORS = """\

Errors that are answered before:

| | |
|---|---|
| UNKNOWN_MEMBER_ID | the group has no such member (any more): the client joins again |
| FENCED_MEMBER_EPOCH | the member's epoch is neither the present one nor, where the answer may have been lost, \
the one before; or it has more partitions than it was given: the client gives all up and joins again |
| UNRELEASED_INSTANCE_ID | another member has this instance id, and has not left |
| FENCED_INSTANCE_ID | another member has taken over this instance id |
| GROUP_MAX_SIZE_REACHED | the group has `group.consumer.max.size` members |
| UNSUPPORTED_ASSIGNOR | the assignor is not one of `group.consumer.assignors` |
| INVALID_REGULAR_EXPRESSION | it is not valid: the language is RE2's but for `\\Q..\\E` and classes beyond ASCII |
| STALE_MEMBER_EPOCH | not the member's epoch; a commit may name an earlier one, for partitions held since (KIP-1251) |
| GROUP_ID_NOT_FOUND | the group has members of the classic protocol |

A static member that leaves for a while says so, and keeps its partitions until its session is over.

A group without members becomes one of the other protocol when a member of that protocol joins, and keeps its offsets. A
group with members does not: JoinGroup is answered with INCONSISTENT_GROUP_PROTOCOL.
"""


def draw() -> Iterator[str]:
    """The page, line by line."""
    yield from _HEAD.splitlines()
    yield from _draw_classic()
    yield from _CONSUMER.splitlines()
    yield from _draw_consumer()
    yield from _ERRORS.splitlines()


def _draw_classic() -> Iterator[str]:
    yield from ("", "```mermaid", "stateDiagram-v2", f"    [*] --> {ClassicGroupState.EMPTY.value}")
    for (state, event), step in sorted(TABLE.items(), key=_place):
        if step.then is not state:
            yield f"    {state.value} --> {step.then.value}: {event.value}"
    yield from (f"    {ClassicGroupState.DEAD.value} --> [*]", "```", "")
    yield "| | " + " | ".join(state.value for state in ClassicGroupState) + " |"
    yield "|---" * (len(ClassicGroupState) + 1) + "|"
    for event in Event:
        yield f"| {event.value} | " + " | ".join(_tell(state, event) for state in ClassicGroupState) + " |"


def _place(item: tuple[tuple[ClassicGroupState, Event], object]) -> tuple[int, int]:
    state, event = item[0]
    return list(ClassicGroupState).index(state), list(Event).index(event)


def _tell(state: ClassicGroupState, event: Event) -> str:
    step = TABLE.get((state, event))
    if step is None:
        return "-"
    told = f"**{step.act.value}**" if step.act in STORED else step.act.value
    return told if step.then is state else f"{told} → {step.then.value}"


def _draw_consumer() -> Iterator[str]:
    yield from ("", "```mermaid", "stateDiagram-v2", f"    [*] --> {MemberState.STABLE.value}")
    for state in MemberState:
        for case in ReconcileCase:
            step = consumer.TABLE.get((state, case))
            if step is not None and step.then is not state:
                yield f"    {state.value} --> {step.then.value}: {case.value}"
    yield from ("```", "")
    yield "| | " + " | ".join(state.value for state in MemberState) + " |"
    yield "|---" * (len(MemberState) + 1) + "|"
    for case in ReconcileCase:
        yield f"| {case.value} | " + " | ".join(_tell_member(state, case) for state in MemberState) + " |"


def _tell_member(state: MemberState, case: ReconcileCase) -> str:
    step = consumer.TABLE.get((state, case))
    if step is None:
        return "-"
    return step.act.value if step.then is state else f"{step.act.value} → {step.then.value}"


if __name__ == "__main__":
    print("\n".join(draw()))  # noqa: T201  it is what this program is for
