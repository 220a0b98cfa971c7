"""The partitions that each member has, and its steps to the target assignment (Kafka's CurrentAssignmentBuilder)."""

from typing import Final

from korvet_fast.core.groups.consumer.machine import TABLE, Act, MemberState, ReconcileCase
from korvet_fast.core.groups.consumer.members import ConsumerMember, Partitions

_NOTHING: Final[Partitions] = frozenset()


class CurrentAssignments:
    """The owner of each partition: the member that may still use it."""

    __slots__ = ("_owners",)

    def __init__(self) -> None:
        self._owners: dict[tuple[bytes, int], ConsumerMember] = {}

    def reconcile(
        self, member: ConsumerMember, target: Partitions, target_epoch: int, owned: Partitions | None, now: float
    ) -> bool:
        """Bring a member nearer to its target; returns whether the member changed.

        `owned`: the partitions that the member has, by its own word; None: it does not say.
        """
        kept, excess = member.assigned & target, member.assigned - target
        wanted = target - kept
        free = wanted
        if wanted:
            free -= {partition for partition in wanted & self._owners.keys() if self._owners[partition] is not member}
        if member.state is MemberState.STABLE and member.epoch == target_epoch:
            case = ReconcileCase.SETTLED
        elif member.state is MemberState.UNREVOKED and _has_any(owned, member.revoking):
            case = ReconcileCase.HOLDS
        elif _has_any(owned, excess):
            case = ReconcileCase.EXCESS
        else:
            case = ReconcileCase.WAITS if wanted - free else ReconcileCase.WHOLE
        act, then = TABLE[member.state, case]
        if act is Act.REPEAT:
            return False
        progress = member.progress
        member.state = then
        if act is Act.REVOKE:
            member.revoke_by = now + member.rebalance_timeout
            self.set(member, kept, excess)
        else:
            member.revoke_by = None
            member.advance(target_epoch)
            self.set(member, kept | free, _NOTHING)
        return member.progress != progress

    def set(self, member: ConsumerMember, assigned: Partitions, revoking: Partitions) -> None:
        """Let a member use the `assigned` partitions, and have it give up the `revoking` ones."""
        for partition in member.assigned | member.revoking:
            del self._owners[partition]
        member.hold(assigned, revoking)
        self._owners.update(dict.fromkeys(assigned | revoking, member))

    def resume(self, member: ConsumerMember) -> None:
        """Note the partitions of a member that was read from the store."""
        for partition in member.assigned | member.revoking:
            self._owners[partition] = member


def _has_any(owned: Partitions | None, partitions: Partitions) -> bool:
    """Whether a member that named `owned` (None: nothing) may still have some of these partitions."""
    return bool(partitions) and (owned is None or not partitions.isdisjoint(owned))
