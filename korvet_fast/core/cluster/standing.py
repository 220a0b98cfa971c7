"""Whether what this broker does for the cluster still counts."""

from korvet_fast.core.cluster.cluster import Cluster


class Standing:
    """Of one of its duties: leading partitions, or coordinating groups.

    The others may have taken this broker for dead while it lived, and shared out what it had. It may have its record
    again since; what it had before is valid no more, until it has been given up and looked at anew.
    """

    __slots__ = ("_cluster", "_returns")

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._returns = cluster.returns

    @property
    def valid(self) -> bool:
        """Whether what this broker has may be relied on."""
        return self._cluster.holds() and self._returns == self._cluster.returns

    def renew(self) -> bool:
        """Valid from now on, as far as it holds its record; whether everything has to be given up for that first."""
        lost = self._returns != self._cluster.returns
        self._returns = self._cluster.returns
        return lost
