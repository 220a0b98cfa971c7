"""Draws the table of `machine` for people: `python -m korvet_fast.core.groups.diagram` prints docs/groups.md."""

from collections.abc import Iterator

from korvet_fast.core.groups.machine import STORED, TABLE, Event, State

_HEAD = """\
# What happens to a consumer group

Drawn from the table in `korvet_fast/core/groups/machine.py` by `make diagrams`; do not edit it here.

Requests of strangers (UNKNOWN_MEMBER_ID), of other generations (ILLEGAL_GENERATION) and of static members that have
been replaced (FENCED_INSTANCE_ID) are refused before. What is in **bold** is stored before anybody is told.
"""


def draw() -> Iterator[str]:
    """The page, line by line."""
    yield from _HEAD.splitlines()
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


if __name__ == "__main__":
    print("\n".join(draw()))  # noqa: T201  it is what this program is for
