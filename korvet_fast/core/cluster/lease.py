"""Whether this broker may still act as leader or coordinator."""

from korvet_fast.core.cluster.cluster import Cluster


class Lease:
    """The lease of one duty of this broker: leading partitions, or coordinating groups.

    The other brokers may have taken this one for dead while it lived, and have shared out its partitions and groups. It
    may have registered again since. The lease stays invalid until this broker has given up its partitions or groups
    (`renew`).
    """

    __slots__ = ("_cluster", "_re_registrations")

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._re_registrations = cluster.re_registrations

    @property
    def is_valid(self) -> bool:
        """Whether this broker still has the duty."""
        return self._cluster.holds_lease() and self._re_registrations == self._cluster.re_registrations

    def renew(self) -> bool:
        """Make the lease valid again. Returns whether this broker lost it, and first has to give up all that it had."""
        lost = self._re_registrations != self._cluster.re_registrations
        self._re_registrations = self._cluster.re_registrations
        return lost
