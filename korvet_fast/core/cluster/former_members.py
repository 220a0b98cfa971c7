"""The brokers that were members before the store's history broke: the registry may have forgotten them."""

from collections.abc import Iterable, Sequence

from korvet_fast.core.cluster.broker_registration import BrokerRegistration


class FormerMembers:
    """Each counts as a member for a lease, in which it can register again.

    Only its present leader knows which offsets of a partition were acknowledged; another one would give them out once
    more.
    """

    def __init__(self) -> None:
        self._members: Sequence[BrokerRegistration] = ()
        self._until = 0.0  # monotonic

    def note(self, members: Sequence[BrokerRegistration], until: float) -> None:
        """Remember the members as the history broke. `until`: the monotonic time at which their leases end."""
        self._members, self._until = members, until

    def missing(self, present: Iterable[BrokerRegistration], now: float) -> list[BrokerRegistration]:
        """The former members that may still register again. `present`: the brokers that are registered now."""
        if now >= self._until:
            return []
        there = list(present)
        return [one for one in self._members if not any(one.id == other.id or one.precedes(other) for other in there)]
