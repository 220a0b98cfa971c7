"""The documents of groups in the registry: one of JSON for each group, and one for each partition that it committed.

groups-17/group/{group}                       state, generation, protocol, leader, members with their assignments; or a
                                              group of another protocol (`consumer.document`, `text.document`)
groups-17/offset/{group}/{topic}/{partition}  the committed offset

17 is the group's coordinator partition: one coordinator acquires the whole partition, and one step of the store can
change all of its keys.
"""

import json
from base64 import b64decode
from collections.abc import Callable
from typing import Any, Final, NamedTuple, TypeAlias
from zlib import crc32

from korvet_fast.core.groups.classic.group import ClassicGroup
from korvet_fast.core.groups.classic.machine import ClassicGroupState
from korvet_fast.core.groups.classic.members import ClassicMember
from korvet_fast.core.groups.config import GroupConfig
from korvet_fast.core.groups.consumer.document import TYPE, pack_consumer, unpack_consumer
from korvet_fast.core.groups.consumer.group import ConsumerGroup
from korvet_fast.core.groups.text import document as text
from korvet_fast.core.groups.text.group import TextGroup

AnyGroup: TypeAlias = ClassicGroup | ConsumerGroup | TextGroup

PARTITIONS: Final = 64  # coordinator partitions; with another number, stored groups would be lost


class TopicPartition(NamedTuple):
    """A partition of a topic."""

    topic: str
    partition: int


class OffsetAndMetadata(NamedTuple):
    """A committed offset. `leader_epoch` -1: the client does not know it. Times are wall times in ms.

    The coordinator fills in the rest: `committed_at`; the `topic_id`, as a topic of the same name that is made later
    begins without committed offsets; `expires_at`, or -1 if the client did not ask for a retention time.
    """

    offset: int
    leader_epoch: int = -1
    metadata: str = ""
    committed_at: int = 0
    topic_id: bytes = b""
    expires_at: int = -1

    def pack(self) -> bytes:
        """The document that is stored."""
        return json.dumps(
            {
                "offset": self.offset,
                "leader_epoch": self.leader_epoch,
                "metadata": self.metadata,
                "ms": self.committed_at,
                "topic_id": self.topic_id.hex(),
                "until": self.expires_at,
            }
        ).encode()


def unpack_offset(document: bytes) -> OffsetAndMetadata:
    """The offset in a document of `OffsetAndMetadata.pack`."""
    values: dict[str, Any] = json.loads(document)
    return OffsetAndMetadata(
        values["offset"],
        values["leader_epoch"],
        values["metadata"],
        values["ms"],
        bytes.fromhex(values["topic_id"]),
        values.get("until", -1),
    )


def partition_for(group_id: str) -> int:
    """The coordinator partition of a group."""
    return crc32(group_id.encode()) % PARTITIONS


def partition_prefix(partition: int) -> str:
    """The beginning of the keys of all groups in a coordinator partition."""
    return f"groups-{partition}/"


def group_key(group_id: str) -> str:
    return f"{partition_prefix(partition_for(group_id))}group/{group_id}"


def offset_key(group_id: str, partition: TopicPartition) -> str:
    return f"{offsets_prefix(group_id)}{partition.topic}/{partition.partition}"


def offsets_prefix(group_id: str) -> str:
    """The beginning of the keys of a group's offsets. Keys of a group with a longer name may begin so too."""
    return f"{partition_prefix(partition_for(group_id))}offset/{group_id}/"


def parse_key(key: str) -> tuple[str, TopicPartition | None]:
    """The group that a key belongs to, and the partition if it is the key of an offset."""
    _, kind, rest = key.split("/", 2)
    if kind == "group":
        return rest, None
    group_id, topic, partition = rest.rsplit("/", 2)
    return group_id, TopicPartition(topic, int(partition))


def is_newer(key: str, document: bytes, other: bytes | None) -> bool:
    """Whether one of two documents under a key was written after the other; None is no document."""
    if other is None:
        return True
    order = "generation" if parse_key(key)[1] is None else "ms"
    return bool(json.loads(document)[order] > json.loads(other)[order])


def _pack_classic(group: ClassicGroup) -> dict[str, Any]:
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
                "session": member.session_timeout,
                "rebalance": member.rebalance_timeout,
                "protocols": member.protocols,
                "assignment": member.assignment,
            }
            for member in group.members
        ],
    }


def _unpack_classic(values: dict[str, Any], config: GroupConfig) -> ClassicGroup:
    group = ClassicGroup(config)
    group.state = ClassicGroupState(values["state"])
    group.generation = values["generation"]
    group.protocol_type = values["protocol_type"]
    group.protocol = values["protocol"]
    group.leader = values["leader"]
    for row in values["members"]:
        member = ClassicMember(row["id"], row["instance_id"], known=True)
        member.client_id, member.client_host = row["client_id"], row["client_host"]
        member.session_timeout, member.rebalance_timeout = row["session"], row["rebalance"]
        member.protocols = tuple((name, b64decode(metadata)) for name, metadata in row["protocols"])
        member.assignment = b64decode(row["assignment"])
        group.members.add(member)
    return group


_PACK: Final[dict[type, Callable[[Any], dict[str, Any]]]] = {
    ClassicGroup: _pack_classic,
    ConsumerGroup: pack_consumer,
    TextGroup: text.pack_text,
}
# By the `type` of the document, which the classic protocol's do not have.
_UNPACK: Final[dict[str | None, Callable[[dict[str, Any], GroupConfig], AnyGroup]]] = {
    None: _unpack_classic,
    TYPE: lambda values, config: unpack_consumer(values, config.consumer),
    text.TYPE: lambda values, config: text.unpack_text(values, config.text),
}


def describe_group(group: AnyGroup, since: int) -> dict[str, Any]:
    """The values of a group's document, for `encoding`: a copy of the present state, which later changes leave alone.

    `since`: wall time in ms when the group became empty.
    """
    return _PACK[type(group)](group) | {"since": since}


def unpack_group(document: bytes, config: GroupConfig) -> tuple[AnyGroup, int]:
    """The group in an encoded document of `describe_group`, and `since`. Call `resume` before anything else."""
    values: dict[str, Any] = json.loads(document)
    return _UNPACK[values.get("type")](values, config), values["since"]
