"""Which replica a consumer is to read from: Kafka's `RackAwareReplicaSelector` (KIP-392)."""

from korvet_fast.config import Settings
from korvet_fast.core.cluster.cluster import Cluster
from korvet_fast.core.replication.leader_progress import LeaderProgress
from korvet_fast.core.replication.replicas import RACK_AWARE, Replicas
from korvet_fast.core.replication.replication import Replication


class RackAwareReplicaSelector:
    """Sends consumers to a follower in their own rack."""

    def __init__(self, replicas: Replicas, cluster: Cluster) -> None:
        self._replicas = replicas
        self._cluster = cluster

    def select(self, log: str, offset: int, rack: str) -> int:
        """The id of the follower to read a log from, that this broker leads; -1 where this broker does as well.

        Of those in sync in the rack that have the offset, the one that has most.
        """
        replica = self._replicas.logs.get(log)
        progress = replica.progress if replica is not None else None
        if not isinstance(progress, LeaderProgress):
            return -1
        near = {member.id for member in self._cluster.members if member.rack == rack}
        if self._cluster.id in near:
            return -1
        ends = {broker: progress.find_end(broker) for broker in sorted(near & progress.isr)}
        return max((broker for broker, end in ends.items() if end >= offset), key=ends.__getitem__, default=-1)


def make_selector(
    settings: Settings, replication: Replication | None, cluster: Cluster
) -> RackAwareReplicaSelector | None:
    """The selector that `replica.selector.class` names; None: every consumer reads from the leader."""
    if replication is None or settings.text("replica.selector.class") != RACK_AWARE:
        return None
    return RackAwareReplicaSelector(replication.replicas, cluster)
