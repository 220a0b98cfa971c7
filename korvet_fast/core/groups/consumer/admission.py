"""Whom a heartbeat comes from, and why it is refused: who is fenced, and who has to begin anew.

Source: KIP-848; and, for who joins again after it was fenced, KAFKA-19233.
"""

from typing import Final

from korvet_fast.core.groups.consumer.members import Beat, ConsumerMember, ConsumerMembers, Parts

_NOTHING: Final[Parts] = frozenset()


def identify(members: ConsumerMembers, ask: Beat, size: int) -> tuple[ConsumerMember | None, str]:
    """The member (None: a newcomer) and the fault, "" for none. A static member may come back under another id.

    `size`: the most members.
    """
    member = members.get(ask.member_id)
    static = members.of_instance(ask.instance_id)
    if ask.instance_id is not None and (ask.epoch != 0 or static is not None):
        if static is not None and static.id != ask.member_id:
            return static, _refuse_instance(static, ask)
        member = static
    if member is not None:
        return member, _refuse_epoch(member, ask)
    if ask.epoch != 0:
        return None, "UNKNOWN_MEMBER_ID"
    return None, "GROUP_MAX_SIZE_REACHED" if len(members) >= size else ""


def _refuse_instance(member: ConsumerMember, ask: Beat) -> str:
    """This member has the instance id, and somebody else asks."""
    if ask.epoch != 0:
        return "FENCED_INSTANCE_ID"
    return "" if member.away else "UNRELEASED_INSTANCE_ID"


def _refuse_epoch(member: ConsumerMember, ask: Beat) -> str:
    if ask.epoch <= 0:
        return ""  # who joins again says that it has nothing
    if member.away:
        return "FENCED_MEMBER_EPOCH"
    owned = ask.owned or _NOTHING
    if ask.epoch == member.epoch:
        # It can only have more than it was given if the store has forgotten that.
        return "" if owned <= member.assigned | member.revoking else "FENCED_MEMBER_EPOCH"
    # The answer with the present epoch may have been lost.
    lost = ask.epoch == member.previous_epoch and ask.owned is not None and owned <= member.assigned
    return "" if lost else "FENCED_MEMBER_EPOCH"
