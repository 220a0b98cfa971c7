"""The rights that commands need, as the table of Kafka's APIs has them (`wire/kafka/access.py`): the same ACLs hold.

PRODUCE is not here, as it is none of the commands: its lines need WRITE on their topics (`api/produce.py`). What peers
send needs no ACL: they have proved who they are.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from korvet_fast.core.acls.binding import Operation, ResourceType
from korvet_fast.errors import Errors, KorvetError
from korvet_fast.wire.text.arguments import Arguments
from korvet_fast.wire.text.session import Command, Payload, Session

_TOPIC, _GROUP = (ResourceType.TOPIC, "topic"), (ResourceType.GROUP, "group")
_ERRORS: Final = {
    ResourceType.TOPIC: Errors.TOPIC_AUTHORIZATION_FAILED,
    ResourceType.GROUP: Errors.GROUP_AUTHORIZATION_FAILED,
}
_MEMBER: Final = (Operation.READ, _GROUP, _TOPIC)

# By command: the operation, and the arguments that name what it is done to.
ACCESS: Final[Mapping[str, tuple[Operation, *tuple[tuple[ResourceType, str], ...]] | None]] = {
    "PING": None,
    "CONSUME": (Operation.READ, _TOPIC),
    "JOIN": _MEMBER,
    "SYNC": _MEMBER,
    "HEARTBEAT": _MEMBER,
    "LEAVE": _MEMBER,
    "COMMIT": _MEMBER,
    "OFFSET": (Operation.DESCRIBE, _GROUP, _TOPIC),
    "CHALLENGE": None,
    "PROVE": None,
    "REPLICA_FETCH": None,
    "SET_PARTITION_ROLE": None,
}


def guard_commands(commands: Mapping[str, Command]) -> dict[str, Command]:
    """The commands, each behind its rights. Raises `KeyError` for a command that the table does not have."""
    return {name: _guard(name, command, ACCESS[name]) for name, command in commands.items()}


def _guard(
    name: str, command: Command, access: tuple[Operation, *tuple[tuple[ResourceType, str], ...]] | None
) -> Command:
    if access is None:
        return command
    operation, *resources = access

    async def guarded(session: Session, arguments: Arguments) -> Payload:
        for resource, argument in resources:
            if not session.authorize(name, operation, resource, str(arguments[argument])):
                raise KorvetError(_ERRORS[resource])
        return await command.handler(session, arguments)

    return replace(command, handler=guarded)
