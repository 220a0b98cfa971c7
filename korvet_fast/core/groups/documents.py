"""A group and its offsets as they stand in the registry: one JSON document for the group, one for each partition.

groups-17/group/{group}                       state, generation, protocol, leader, members with their assignments; or
                                              of the consumer protocol (`consumer.document`)
groups-17/offset/{group}/{topic}/{partition}  what was committed last

17 is the group's slot: what one coordinator takes over as a whole, and what can be changed in one step of the store.
"""

import json
from base64 import b64decode, b64encode
from typing import Any, Final, NamedTuple, TypeAlias
from zlib import crc32

from korvet_fast.core.groups.consumer.document import TYPE, pack_consumer, unpack_consumer
from korvet_fast.core.groups.consumer.group import ConsumerGroup
from korvet_fast.core.groups.group import Group, Rules
from korvet_fast.core.groups.machine import State
from korvet_fast.core.groups.members import Member

AnyGroup: TypeAlias = Group | ConsumerGroup

SLOTS: Final = 64  # of all groups there are; another number would lose what is stored


class Place(NamedTuple):
    """A partition of a topic."""

    topic: str
    partition: int


class Commit(NamedTuple):
    """A position, committed at `ms` (wall time). `until`: when it expires, if its client said so, else -1.

    `topic_id`: of the topic it was committed for; one of the same name that is made later begins without commits.
    """

    offset: int
    leader_epoch: int
    metadata: str
    ms: int
    topic_id: bytes
    until: int = -1

    def pack(self) -> bytes:
        return json.dumps(self._asdict() | {"topic_id": self.topic_id.hex()}).encode()


def unpack_commit(document: bytes) -> Commit:
    """What `Commit.pack` wrote."""
    values: dict[str, Any] = json.loads(document)
    return Commit(**values | {"topic_id": bytes.fromhex(values["topic_id"])})


def slot_of(group_id: str) -> int:
    """The group's slot."""
    return crc32(group_id.encode()) % SLOTS


def slot_prefix(slot: int) -> str:
    """What the keys of all groups in a slot begin with."""
    return f"groups-{slot}/"


def group_key(group_id: str) -> str:
    return f"{slot_prefix(slot_of(group_id))}group/{group_id}"


def offset_key(group_id: str, place: Place) -> str:
    return f"{offsets_prefix(group_id)}{place.topic}/{place.partition}"


def offsets_prefix(group_id: str) -> str:
    """What the keys of a group's offsets begin with; so may those of a group whose name begins with this one's."""
    return f"{slot_prefix(slot_of(group_id))}offset/{group_id}/"


def parse_key(key: str) -> tuple[str, Place | None]:
    """The group that a key belongs to, and the partition if it is that of an offset."""
    _, kind, rest = key.split("/", 2)
    if kind == "group":
        return rest, None
    group_id, topic, partition = rest.rsplit("/", 2)
    return group_id, Place(topic, int(partition))


def is_newer(key: str, document: bytes, other: bytes | None) -> bool:
    """Whether one of two documents under a key was written after the other; None is none."""
    if other is None:
        return True
    order = "generation" if parse_key(key)[1] is None else "ms"
    return bool(json.loads(document)[order] > json.loads(other)[order])


def pack_group(group: AnyGroup, since: int) -> bytes:
    """`since`: wall time in ms when it became empty."""
    values = pack_consumer(group) if isinstance(group, ConsumerGroup) else _pack_classic(group)
    return json.dumps(values | {"since": since}).encode()


def unpack_group(document: bytes, rules: Rules) -> tuple[AnyGroup, int]:
    """What `pack_group` wrote: the group, to be resumed, and `since`."""
    values: dict[str, Any] = json.loads(document)
    if values.get("type") == TYPE:
        return unpack_consumer(values, rules.consumer), values["since"]
    return _unpack_classic(values, rules), values["since"]


def _pack_classic(group: Group) -> dict[str, Any]:
    return {
        "state": group.state.value,
        "generation": group.generation,
        "protocol_type": group.protocol_type,
        "protocol": group.protocol,
        "leader": group.leader,
        "members": [
            {
                "id": member.id,
                "instance_id": member.instance_id,
                "client_id": member.client_id,
                "client_host": member.client_host,
                "session": member.session,
                "rebalance": member.rebalance,
                "protocols": [[name, b64encode(metadata).decode()] for name, metadata in member.protocols],
                "assignment": b64encode(member.assignment).decode(),
            }
            for member in group.members
        ],
    }


def _unpack_classic(values: dict[str, Any], rules: Rules) -> Group:
    group = Group(rules)
    group.state = State(values["state"])
    group.generation = values["generation"]
    group.protocol_type = values["protocol_type"]
    group.protocol = values["protocol"]
    group.leader = values["leader"]
    for row in values["members"]:
        member = Member(row["id"], row["instance_id"], known=True)
        member.client_id, member.client_host = row["client_id"], row["client_host"]
        member.session, member.rebalance = row["session"], row["rebalance"]
        member.protocols = tuple((name, b64decode(metadata)) for name, metadata in row["protocols"])
        member.assignment = b64decode(row["assignment"])
        group.members.add(member)
    return group
