"""Authorised operations as Metadata and DescribeCluster tell them: bits by AclOperation's number (KIP-430).

Nothing is restricted here, so every client may do every operation of the resource.
"""

from typing import Final

_READ, _WRITE, _CREATE, _DELETE, _ALTER, _DESCRIBE, _CLUSTER_ACTION, _DESCRIBE_CONFIGS, _ALTER_CONFIGS = range(3, 12)
_IDEMPOTENT_WRITE = 12


def _bits(*operations: int) -> int:
    return sum(1 << operation for operation in operations)


GROUP: Final = _bits(_READ, _DELETE, _DESCRIBE)
TOPIC: Final = _bits(_READ, _WRITE, _CREATE, _DELETE, _ALTER, _DESCRIBE, _DESCRIBE_CONFIGS, _ALTER_CONFIGS)
CLUSTER: Final = _bits(
    _CREATE, _ALTER, _DESCRIBE, _CLUSTER_ACTION, _DESCRIBE_CONFIGS, _ALTER_CONFIGS, _IDEMPOTENT_WRITE
)
