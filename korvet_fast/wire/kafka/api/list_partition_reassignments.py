"""ListPartitionReassignments (key 46), version 0 (KIP-455): no partition moves from one replica set to another here.

Partitions follow the brokers that are there by themselves, so there is nothing to list; tools ask all the same.
"""

from korvet_fast.wire.kafka.session import Session, Values


async def list_partition_reassignments(session: Session, request: Values, version: int) -> Values:
    return {"topics": []}
