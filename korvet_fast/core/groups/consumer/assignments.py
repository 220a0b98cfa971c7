"""The partitions that each member has, and its steps to the target assignment (Kafka's CurrentAssignmentBuilder)."""

from collections.abc import Set
from typing import Final

from korvet_fast.core.groups.consumer.machine import TABLE, Act, MemberState, ReconcileCase
from korvet_fast.core.groups.consumer.members import ConsumerMember
from korvet_fast.core.groups.consumer.partition_set import Partitions, TopicIdPartition

_NOTHING: Final = Partitions()


class CurrentAssignments:
    """Which partitions have an owner: a member that may still use them. No partition has two."""

    __slots__ = ("_taken",)

    def __init__(self) -> None:
        self._taken: dict[bytes, int] = {}  # as `Partitions.masks`

    def reconcile(
        self,
        member: ConsumerMember,
        target: Partitions,
        target_epoch: int,
        owned: Set[TopicIdPartition] | None,
        now: float,
    ) -> bool:
        """Bring a member nearer to its target; returns whether the member changed.

        `owned`: the partitions that the member has, by its own word; None: it does not say.
        """
        case = _find_resting_case(member, target_epoch, owned)
        if case is not None and TABLE[member.state, case][0] is Act.REPEAT:
            return False  # most heartbeats: they make no sets
        kept, excess = member.assigned & target, member.assigned - target
        wanted = target - kept
        own = (member.assigned | member.revoking) & wanted
        free = wanted.without(self._taken) | own
        if case is None and _has_any(owned, excess):
            case = ReconcileCase.EXCESS
        elif case is None:
            case = ReconcileCase.WAITS if wanted - free else ReconcileCase.WHOLE
        act, then = TABLE[member.state, case]
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
        taken = self._taken
        for topic, mask in (member.assigned | member.revoking).masks.items():
            taken[topic] &= ~mask
            if not taken[topic]:
                del taken[topic]
        member.hold(assigned, revoking)
        self.resume(member)

    def resume(self, member: ConsumerMember) -> None:
        """Note the partitions of a member."""
        for topic, mask in (member.assigned | member.revoking).masks.items():
            self._taken[topic] = self._taken.get(topic, 0) | mask


def _find_resting_case(
    member: ConsumerMember, target_epoch: int, owned: Set[TopicIdPartition] | None
) -> ReconcileCase | None:
    """The case of a member that waits for nobody but itself; None: its target decides."""
    if member.state is MemberState.STABLE and member.epoch == target_epoch:
        return ReconcileCase.SETTLED
    if member.state is MemberState.UNREVOKED and _has_any(owned, member.revoking):
        return ReconcileCase.HOLDS
    return None


def _has_any(owned: Set[TopicIdPartition] | None, partitions: Partitions) -> bool:
    """Whether a member that named `owned` (None: nothing) may still have some of these partitions."""
    return bool(partitions) and (owned is None or partitions.meets(owned))
