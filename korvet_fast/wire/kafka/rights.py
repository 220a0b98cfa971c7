"""The rights that Kafka's requests need: an operation on a type of resource, and the error of who does not have it."""

from typing import Final, NamedTuple

from korvet_fast.core.acls.binding import CLUSTER_NAME, Operation, ResourceType
from korvet_fast.errors import Errors, KorvetError
from korvet_fast.wire.kafka.session import Session
from korvet_fast.wire.kafka.shapes.message import Message


class Right(NamedTuple):
    """An operation on resources of one type; `error` is told where it is not allowed."""

    operation: Operation
    resource: ResourceType
    error: Errors


_ERRORS: Final = {
    ResourceType.TOPIC: Errors.TOPIC_AUTHORIZATION_FAILED,
    ResourceType.GROUP: Errors.GROUP_AUTHORIZATION_FAILED,
    ResourceType.CLUSTER: Errors.CLUSTER_AUTHORIZATION_FAILED,
    ResourceType.TRANSACTIONAL_ID: Errors.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
}


def right(operation: Operation, resource: ResourceType) -> Right:
    """The right, with the error that belongs to the type of resource."""
    return Right(operation, resource, _ERRORS[resource])


READ_TOPIC: Final = right(Operation.READ, ResourceType.TOPIC)
WRITE_TOPIC: Final = right(Operation.WRITE, ResourceType.TOPIC)
CREATE_TOPIC: Final = right(Operation.CREATE, ResourceType.TOPIC)
DELETE_TOPIC: Final = right(Operation.DELETE, ResourceType.TOPIC)
ALTER_TOPIC: Final = right(Operation.ALTER, ResourceType.TOPIC)
DESCRIBE_TOPIC: Final = right(Operation.DESCRIBE, ResourceType.TOPIC)
DESCRIBE_TOPIC_CONFIGS: Final = right(Operation.DESCRIBE_CONFIGS, ResourceType.TOPIC)
ALTER_TOPIC_CONFIGS: Final = right(Operation.ALTER_CONFIGS, ResourceType.TOPIC)
READ_GROUP: Final = right(Operation.READ, ResourceType.GROUP)
DELETE_GROUP: Final = right(Operation.DELETE, ResourceType.GROUP)
DESCRIBE_GROUP: Final = right(Operation.DESCRIBE, ResourceType.GROUP)
DESCRIBE_GROUP_CONFIGS: Final = right(Operation.DESCRIBE_CONFIGS, ResourceType.GROUP)
ALTER_GROUP_CONFIGS: Final = right(Operation.ALTER_CONFIGS, ResourceType.GROUP)
CREATE_CLUSTER: Final = right(Operation.CREATE, ResourceType.CLUSTER)
DELETE_CLUSTER: Final = right(Operation.DELETE, ResourceType.CLUSTER)
ALTER_CLUSTER: Final = right(Operation.ALTER, ResourceType.CLUSTER)
DESCRIBE_CLUSTER: Final = right(Operation.DESCRIBE, ResourceType.CLUSTER)
DESCRIBE_CLUSTER_CONFIGS: Final = right(Operation.DESCRIBE_CONFIGS, ResourceType.CLUSTER)
ALTER_CLUSTER_CONFIGS: Final = right(Operation.ALTER_CONFIGS, ResourceType.CLUSTER)
CLUSTER_ACTION: Final = right(Operation.CLUSTER_ACTION, ResourceType.CLUSTER)
IDEMPOTENT_WRITE: Final = right(Operation.IDEMPOTENT_WRITE, ResourceType.CLUSTER)
WRITE_TRANSACTION: Final = right(Operation.WRITE, ResourceType.TRANSACTIONAL_ID)
DESCRIBE_TRANSACTION: Final = right(Operation.DESCRIBE, ResourceType.TRANSACTIONAL_ID)


def sees(session: Session, wanted: Right, name: str = CLUSTER_NAME) -> bool:
    """As `has`, and nothing is written: for lists without what is not allowed, and where another right does instead."""
    permissions = session.find_permissions()
    return permissions is None or permissions.allows(wanted.operation, wanted.resource, name)


def has(session: Session, api: Message, wanted: Right, name: str = CLUSTER_NAME, *, by_cluster: bool = False) -> bool:
    """Whether the client may do this to the resource of this name; the cluster's where none is given.

    `api` asks for it. `by_cluster`: see `ClientSession.authorize`.
    """
    return session.authorize(api.name, wanted.operation, wanted.resource, name, by_cluster=by_cluster)


def require(
    session: Session, api: Message, wanted: Right, name: str = CLUSTER_NAME, *, by_cluster: bool = False
) -> None:
    """Raises `KorvetError` with the right's error if the client does not have it. Otherwise as `has`."""
    if not has(session, api, wanted, name, by_cluster=by_cluster):
        raise KorvetError(wanted.error)
