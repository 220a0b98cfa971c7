"""Where partitions are to live, as CreateTopics and CreatePartitions let a client say it: here, on the one broker."""

from collections.abc import Sequence

from korvet_fast.errors import KorvetError


def check_assignment(broker_ids: Sequence[int], node_id: int) -> None:
    """Raises `KorvetError` INVALID_REPLICA_ASSIGNMENT unless the only replica is this broker's."""
    if list(broker_ids) != [node_id]:
        raise KorvetError(
            "INVALID_REPLICA_ASSIGNMENT", f"replicas {list(broker_ids)} asked for, but broker {node_id} is the only one"
        )
