"""The assignments of new partitions in CreateTopics and CreatePartitions.

Several brokers spread partitions by a rule of their own, so a client cannot choose; one broker has them all.
"""

from collections.abc import Sequence

from korvet_fast.core.cluster.cluster import Cluster
from korvet_fast.errors import Errors, KorvetError


def check_assignment(broker_ids: Sequence[int], cluster: Cluster) -> None:
    """Raises `KorvetError` INVALID_REPLICA_ASSIGNMENT unless the only replica is the only broker's."""
    asked = f"replicas {list(broker_ids)} asked for, but"
    if not cluster.alone:
        raise KorvetError(
            Errors.INVALID_REPLICA_ASSIGNMENT, f"{asked} the brokers spread partitions themselves: name none"
        )
    if list(broker_ids) != [cluster.id]:
        raise KorvetError(Errors.INVALID_REPLICA_ASSIGNMENT, f"{asked} broker {cluster.id} is the only one")
