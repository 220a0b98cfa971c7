"""The estimated time of a command on the loop, in microseconds, before its work starts: measured, and rounded up.

Memory is charged elsewhere: a line by its bytes (`Session.cost`), a CONSUME by the room that its answer asks for.
"""

from typing import Final

from korvet_fast.wire.text.arguments import Arguments
from korvet_fast.wire.text.session import Session

DEFAULT_MAX: Final = 500  # messages that a CONSUME gives
MOST_BYTES: Final = 1 << 20  # bytes of its answer
_LEAST: Final = 16  # bytes that a message takes of an answer, about


def of_consume(session: Session, arguments: Arguments) -> int:
    """The work is bounded by the bytes of the answer, whatever `max` asks for."""
    return min(int(arguments.get("max", DEFAULT_MAX)), MOST_BYTES // _LEAST)


def of_members(session: Session, arguments: Arguments) -> int:
    """Whoever joins or leaves has the partitions dealt out anew among all members, and the group stored."""
    runtime = session.broker.groups.partitions.runtimes.get(str(arguments["group"]))
    return 2 * len(runtime.group.members) if runtime is not None else 0
