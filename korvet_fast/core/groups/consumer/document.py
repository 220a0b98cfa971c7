"""A consumer group as it stands in the registry: what `documents` makes JSON of.

`generation` counts the changes, as that of a classic group does: of two documents the one with the larger is newer.
"""

from typing import Any, Final

from korvet_fast.core.groups.consumer.group import ConsumerGroup, ConsumerRules
from korvet_fast.core.groups.consumer.machine import Stage
from korvet_fast.core.groups.consumer.members import ConsumerMember, Part, Parts, TopicView

TYPE: Final = "consumer"


def pack_consumer(group: ConsumerGroup) -> dict[str, Any]:
    """The group as values of JSON."""
    return {
        "type": TYPE,
        "generation": group.revision,
        "epoch": group.epoch,
        "target_epoch": group.target_epoch,
        "topics": {name: [view.id.hex(), view.partitions] for name, view in group.seen.items()},
        "members": [
            {
                "id": member.id,
                "instance_id": member.instance_id,
                "rack_id": member.rack_id,
                "client_id": member.client_id,
                "client_host": member.client_host,
                "names": member.names,
                "regex": member.regex,
                "assignor": member.assignor,
                "rebalance": member.rebalance,
                "epoch": member.epoch,
                "previous_epoch": member.previous_epoch,
                "stage": member.stage.value,
                "away": member.away,
                "assigned": _pack_parts(member.assigned),
                "revoking": _pack_parts(member.revoking),
                "target": _pack_parts(group.target.get(member.id, frozenset())),
            }
            for member in group.members
        ],
    }


def unpack_consumer(values: dict[str, Any], rules: ConsumerRules) -> ConsumerGroup:
    """What `pack_consumer` gave; to be resumed."""
    group = ConsumerGroup(rules, values["epoch"])
    group.revision = values["generation"]
    group.target_epoch = values["target_epoch"]
    group.seen = {
        name: TopicView(bytes.fromhex(identity), count) for name, (identity, count) in values["topics"].items()
    }
    for row in values["members"]:
        member = ConsumerMember(row["id"])
        for name in ("instance_id", "rack_id", "client_id", "client_host", "regex", "assignor", "rebalance", "away"):
            setattr(member, name, row[name])
        member.names = tuple(row["names"])
        member.epoch, member.previous_epoch = row["epoch"], row["previous_epoch"]
        member.stage = Stage(row["stage"])
        member.assigned, member.revoking = _unpack_parts(row["assigned"]), _unpack_parts(row["revoking"])
        group.members.add(member)
        group.target[member.id] = _unpack_parts(row["target"])
    return group


def _pack_parts(parts: Parts) -> dict[str, list[int]]:
    packed: dict[str, list[int]] = {}
    for topic, index in sorted(parts):
        packed.setdefault(topic.hex(), []).append(index)
    return packed


def _unpack_parts(packed: dict[str, list[int]]) -> Parts:
    return frozenset(Part(bytes.fromhex(topic), index) for topic, indexes in packed.items() for index in indexes)
