"""Draws the tables of `machine` and `consumer.machine` for people: `python -m korvet_fast.core.groups.diagram`."""

from collections.abc import Iterator

from korvet_fast.core.groups.consumer import machine as consumer
from korvet_fast.core.groups.consumer.machine import Finding, Stage
from korvet_fast.core.groups.machine import STORED, TABLE, Event, State

_HEAD = """\
# What happens to a consumer group

Drawn from the tables in `korvet_fast/core/groups/machine.py` and `korvet_fast/core/groups/consumer/machine.py` by
`make diagrams`; do not edit it here.

## The classic protocol

Members join and sync, and one of them assigns. Requests of strangers (UNKNOWN_MEMBER_ID), of other generations
(ILLEGAL_GENERATION) and of static members that have been replaced (FENCED_INSTANCE_ID) are refused before. What is in
**bold** is stored before anybody is told.
"""

_CONSUMER = """\

## The consumer protocol

Members only send heartbeats, and the broker assigns (KIP-848; `group.protocol=consumer` in clients). Who joins or
leaves, what members want to read, and what there is of it raise the group's epoch; the next heartbeat makes a target
for it. Each member goes to that target at its own pace. A partition is given to its new owner when the old one has
said in a heartbeat that it has it no more, or is gone: silent for `group.consumer.session.timeout.ms`, or for the
rebalance timeout that it named itself while it was to give something up.

What a heartbeat finds, and where that leads its member. Whatever changes is stored before anybody is told.
"""

_FAULTS = """\

Refused before:

| | |
|---|---|
| UNKNOWN_MEMBER_ID | it is not in the group (any more): it joins again |
| FENCED_MEMBER_EPOCH | its epoch is neither the present one nor, where the answer may have been lost, the one before; \
or it has more than it was given: it gives everything up and joins again |
| UNRELEASED_INSTANCE_ID | another static member of this instance is there, and has not said that it goes |
| FENCED_INSTANCE_ID | another static member has taken its place |
| GROUP_MAX_SIZE_REACHED | there are `group.consumer.max.size` members |
| UNSUPPORTED_ASSIGNOR | it is not one of `group.consumer.assignors` |
| INVALID_REGULAR_EXPRESSION | it cannot be read: the language is RE2's but for `\\Q..\\E` and classes beyond ASCII |
| STALE_MEMBER_EPOCH | a commit, or a look at what is committed, in another epoch than the member's |
| GROUP_ID_NOT_FOUND | members of the classic protocol are in the group |

A static member that goes for a while says so, and has its partitions kept until its session is over.

A group without members turns into one of the other protocol when somebody joins, and keeps what it has committed. While
members are there it does not: JoinGroup is answered with INCONSISTENT_GROUP_PROTOCOL.
"""


def draw() -> Iterator[str]:
    """The page, line by line."""
    yield from _HEAD.splitlines()
    yield from _draw_classic()
    yield from _CONSUMER.splitlines()
    yield from _draw_consumer()
    yield from _FAULTS.splitlines()


def _draw_classic() -> Iterator[str]:
    yield from ("", "```mermaid", "stateDiagram-v2", f"    [*] --> {State.EMPTY.value}")
    for (state, event), step in sorted(TABLE.items(), key=_place):
        if step.then is not state:
            yield f"    {state.value} --> {step.then.value}: {event.value}"
    yield from (f"    {State.DEAD.value} --> [*]", "```", "")
    yield "| | " + " | ".join(state.value for state in State) + " |"
    yield "|---" * (len(State) + 1) + "|"
    for event in Event:
        yield f"| {event.value} | " + " | ".join(_tell(state, event) for state in State) + " |"


def _place(item: tuple[tuple[State, Event], object]) -> tuple[int, int]:
    state, event = item[0]
    return list(State).index(state), list(Event).index(event)


def _tell(state: State, event: Event) -> str:
    step = TABLE.get((state, event))
    if step is None:
        return "-"
    told = f"**{step.act.value}**" if step.act in STORED else step.act.value
    return told if step.then is state else f"{told} → {step.then.value}"


def _draw_consumer() -> Iterator[str]:
    yield from ("", "```mermaid", "stateDiagram-v2", f"    [*] --> {Stage.STABLE.value}")
    for stage in Stage:
        for finding in Finding:
            step = consumer.TABLE.get((stage, finding))
            if step is not None and step.then is not stage:
                yield f"    {stage.value} --> {step.then.value}: {finding.value}"
    yield from ("```", "")
    yield "| | " + " | ".join(stage.value for stage in Stage) + " |"
    yield "|---" * (len(Stage) + 1) + "|"
    for finding in Finding:
        yield f"| {finding.value} | " + " | ".join(_tell_member(stage, finding) for stage in Stage) + " |"


def _tell_member(stage: Stage, finding: Finding) -> str:
    step = consumer.TABLE.get((stage, finding))
    if step is None:
        return "-"
    return step.act.value if step.then is stage else f"{step.act.value} → {step.then.value}"


if __name__ == "__main__":
    print("\n".join(draw()))  # noqa: T201  it is what this program is for
