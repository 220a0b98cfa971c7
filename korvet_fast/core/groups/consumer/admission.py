"""Admission of heartbeats: finds the member that sends one, and the reason to refuse it.

Source: KIP-848; and KAFKA-19233 for a member that joins again after it was fenced.
"""

from korvet_fast.core.groups.budget import MEMBER, GroupBudget, memory_of_ids
from korvet_fast.core.groups.consumer.members import (
    ConsumerMember,
    ConsumerMembers,
    HeartbeatRequest,
    memory_of_subscription,
)
from korvet_fast.errors import NONE, Errors


def identify(
    members: ConsumerMembers, request: HeartbeatRequest, max_size: int
) -> tuple[ConsumerMember | None, Errors]:
    """The member (None: a newcomer) and the error. A static member may come back under another id.

    `max_size`: the most members.
    """
    member = members.get(request.member_id)
    static = members.of_instance(request.instance_id)
    if request.instance_id is not None and (request.epoch != 0 or static is not None):
        if static is not None and static.id != request.member_id:
            return static, _refuse_instance(static, request)
        member = static
    if member is not None:
        return member, _refuse_epoch(member, request)
    if request.epoch != 0:
        return None, Errors.UNKNOWN_MEMBER_ID
    return None, Errors.GROUP_MAX_SIZE_REACHED if len(members) >= max_size else NONE


def _refuse_instance(member: ConsumerMember, request: HeartbeatRequest) -> Errors:
    """The error of a client that names the instance id of `member`, and another member id."""
    if request.epoch != 0:
        return Errors.FENCED_INSTANCE_ID
    return NONE if member.away else Errors.UNRELEASED_INSTANCE_ID


def _refuse_epoch(member: ConsumerMember, request: HeartbeatRequest) -> Errors:
    if request.epoch <= 0:
        return NONE  # a member that joins again has no partitions
    if member.away:
        return Errors.FENCED_MEMBER_EPOCH
    owned = request.owned
    if request.epoch == member.epoch:
        # A member with other partitions than these got them in a change that the store has lost.
        known = not owned or (member.assigned | member.revoking).covers(owned)
        return NONE if known else Errors.FENCED_MEMBER_EPOCH
    # The answer with the present epoch may have been lost.
    lost = request.epoch == member.previous_epoch and owned is not None and member.assigned.covers(owned)
    return NONE if lost else Errors.FENCED_MEMBER_EPOCH


def may_grow(member: ConsumerMember, request: HeartbeatRequest) -> bool:
    """Whether a member may take more memory after this heartbeat."""
    if request.epoch < 0:
        return False
    said = request.names not in (None, member.names) or bool(request.regex)
    return said or request.epoch == 0 or member.changes_ids(request)


def refuse_growth(budget: GroupBudget, memory: int, member: ConsumerMember | None, request: HeartbeatRequest) -> Errors:
    """The error if a group of `memory` bytes has no room for the request's additions. `member` None: a newcomer."""
    identity = request.member_id or request.new_member_id
    if member is None:
        ids = identity, request.instance_id, request.rack_id, request.client_id, request.client_host
        subscription = memory_of_subscription(request.names or (), request.regex or "")
        return budget.refuse(memory, MEMBER + memory_of_ids(*ids) + subscription)
    instance_id = member.instance_id if request.instance_id is None else request.instance_id
    rack_id = member.rack_id if request.rack_id is None else request.rack_id
    # A member may come back from a host with a longer address.
    more = memory_of_ids(identity, instance_id, rack_id, request.client_id, member.client_host) - member.ids_memory
    names = member.names if request.names is None else request.names
    regex = member.regex if request.regex is None else request.regex
    more += memory_of_subscription(names, regex) - member.subscription_memory
    return budget.refuse(memory, more)
