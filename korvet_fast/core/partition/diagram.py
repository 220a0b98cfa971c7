"""Draws the table of `leadership` for people: `python -m korvet_fast.core.partition.diagram`."""

from collections.abc import Iterator

from korvet_fast.core.partition.leadership import ALLOWS, ERRORS, TABLE, Act, Event, LeadershipState, Operation

_HEAD = """\
# Who leads a partition

Drawn from the tables in `korvet_fast/core/partition/leadership.py` by `make diagrams`; do not edit it here.

A broker acquires a partition's log from the store, and the store refuses the former leader. The leader answers
reads and appends. After a failed append it does not know where the log ends, so it asks the store before it appends
again. After a change of the store's history, or when the store refuses an append as not the leader's, the broker does
not know whether it still leads: it acquires the log anew, under a higher leader epoch.
"""

_ALLOWED = """\

The operations that each state allows, and its answer to all others:
"""

_EVENTS = """\

The act that each event causes, and the state after it:
"""


def draw() -> Iterator[str]:
    """The page, line by line."""
    yield from _HEAD.splitlines()
    yield from ("", "```mermaid", "stateDiagram-v2", f"    [*] --> {LeadershipState.NOT_LEADER.value}")
    for state in LeadershipState:
        for event in Event:
            step = TABLE[state, event]
            if step.then is not state:
                yield f"    {state.value} --> {step.then.value}: {event.value}"
    yield from (f"    {LeadershipState.DELETED.value} --> [*]", "```")
    yield from _ALLOWED.splitlines()
    yield from ("", "| | " + " | ".join(operation.value for operation in Operation) + " | otherwise |")
    yield "|---" * (len(Operation) + 2) + "|"
    for state in LeadershipState:
        allowed = " | ".join("yes" if operation in ALLOWS[state] else "no" for operation in Operation)
        yield f"| {state.value} | {allowed} | {ERRORS[state] or '-'} |"
    yield from _EVENTS.splitlines()
    yield from ("", "| | " + " | ".join(state.value for state in LeadershipState) + " |")
    yield "|---" * (len(LeadershipState) + 1) + "|"
    for event in Event:
        yield f"| {event.value} | " + " | ".join(_tell(state, event) for state in LeadershipState) + " |"


def _tell(state: LeadershipState, event: Event) -> str:
    act, then = TABLE[state, event]
    return act.value if then is state or act is Act.BUG else f"{act.value} → {then.value}"


if __name__ == "__main__":
    print("\n".join(draw()))  # noqa: T201  it is what this program is for
