"""Authorised operations as Metadata and DescribeCluster tell them: bits by AclOperation's number (KIP-430).

Of the operations that a resource of its type has, those that the client may do: all where nothing is restricted.
"""

from collections.abc import Mapping
from typing import Final

from korvet_fast.core.acls.binding import CLUSTER_NAME, Operation, ResourceType
from korvet_fast.wire.kafka.session import Session


def _bits(*operations: Operation) -> int:
    return sum(1 << operation for operation in operations)


_GROUP: Final = _bits(Operation.READ, Operation.DELETE, Operation.DESCRIBE)
_TOPIC: Final = _bits(
    Operation.READ,
    Operation.WRITE,
    Operation.CREATE,
    Operation.DELETE,
    Operation.ALTER,
    Operation.DESCRIBE,
    Operation.DESCRIBE_CONFIGS,
    Operation.ALTER_CONFIGS,
)
_CLUSTER: Final = _bits(
    Operation.CREATE,
    Operation.ALTER,
    Operation.DESCRIBE,
    Operation.CLUSTER_ACTION,
    Operation.DESCRIBE_CONFIGS,
    Operation.ALTER_CONFIGS,
    Operation.IDEMPOTENT_WRITE,
)
# As AclEntry.supportedOperations has them.
SUPPORTED: Final[Mapping[ResourceType, int]] = {
    ResourceType.GROUP: _GROUP,
    ResourceType.TOPIC: _TOPIC,
    ResourceType.CLUSTER: _CLUSTER,
}


def find_operations(session: Session, resource: ResourceType, name: str = CLUSTER_NAME) -> int:
    """The operations that the client may do to a resource, as bits."""
    permissions = session.find_permissions()
    supported = SUPPORTED[resource]
    return supported if permissions is None else supported & permissions.operations(resource, name)
