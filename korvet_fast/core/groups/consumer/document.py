"""The document of a consumer group in the registry, as values; `documents` makes JSON of it.

`generation` counts the changes, as in a classic group: the document with the larger number is the newer one.
"""

from typing import Any, Final

from korvet_fast.core.groups.config import ConsumerConfig
from korvet_fast.core.groups.consumer.group import ConsumerGroup
from korvet_fast.core.groups.consumer.machine import MemberState
from korvet_fast.core.groups.consumer.members import ConsumerMember, TopicView
from korvet_fast.core.groups.consumer.partition_set import Partitions, make_mask

TYPE: Final = "consumer"


def pack_consumer(group: ConsumerGroup) -> dict[str, Any]:
    """The group as values of JSON."""
    packed: dict[Partitions, dict[str, list[int]]] = {}  # mostly a member's target equals its assignment

    def pack(partitions: Partitions) -> dict[str, list[int]]:
        if partitions not in packed:
            packed[partitions] = _pack_partitions(partitions)
        return packed[partitions]

    return {
        "type": TYPE,
        "generation": group.revision,
        "epoch": group.epoch,
        "target_epoch": group.target_epoch,
        "topics": {name: [view.id.hex(), view.partitions] for name, view in group.subscribed.topics.items()},
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
                "rebalance": member.rebalance_timeout,
                "epoch": member.epoch,
                "previous_epoch": member.previous_epoch,
                "stage": member.state.value,
                "away": member.away,
                "assigned": pack(member.assigned),
                "revoking": pack(member.revoking),
                "target": pack(group.target.get(member.id, Partitions())),
            }
            for member in group.members
        ],
    }


def unpack_consumer(values: dict[str, Any], config: ConsumerConfig) -> ConsumerGroup:
    """The group in the values of `pack_consumer`. Call its `resume` before anything else."""
    group = ConsumerGroup(config, values["epoch"])
    group.revision = values["generation"]
    group.target_epoch = values["target_epoch"]
    group.subscribed.topics = {
        name: TopicView(bytes.fromhex(identity), count) for name, (identity, count) in values["topics"].items()
    }
    for row in values["members"]:
        member = ConsumerMember(row["id"])
        for name in ("instance_id", "rack_id", "client_id", "client_host", "assignor", "away"):
            setattr(member, name, row[name])
        member.count_ids()
        member.rebalance_timeout = row["rebalance"]
        member.subscribe(tuple(row["names"]), row["regex"])
        member.epoch, member.previous_epoch = row["epoch"], row["previous_epoch"]
        member.state = MemberState(row["stage"])
        member.assigned, member.revoking = _unpack_partitions(row["assigned"]), _unpack_partitions(row["revoking"])
        group.members.add(member)
        group.target[member.id] = _unpack_partitions(row["target"])
    group.count_memory()
    return group


def _pack_partitions(partitions: Partitions) -> dict[str, list[int]]:
    return {topic.hex(): indexes for topic, indexes in partitions.list_rows()}


def _unpack_partitions(packed: dict[str, list[int]]) -> Partitions:
    return Partitions.of({bytes.fromhex(topic): make_mask(indexes) for topic, indexes in packed.items()})
