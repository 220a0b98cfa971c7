"""The state of a partition in the metadata log: its leader, leader epoch and in-sync replicas."""

import json
from collections.abc import Sequence
from typing import Final, NamedTuple

from korvet_fast.store.types import CannotLead

PREFIX: Final = "partitions/"  # key: this and the log's name


class PartitionState(NamedTuple):
    """`topic`: the topic's id, as hex. `leader` is to lead, and does so when it has an epoch of its own.

    `recovering`: the operator named a leader that is not in sync; it leads with whatever it has (KIP-704).
    `version` counts the changes. Without a document in the metadata log, the first replica is to lead, and all are in
    sync: nobody has anything.
    """

    topic: str
    version: int
    leader: int
    epoch: int
    isr: tuple[int, ...]
    recovering: bool = False

    def pack(self) -> bytes:
        """The document."""
        return json.dumps(self._asdict()).encode()

    def name_another(self, log: str, lost: int) -> str:
        """What an operator may do where broker `lost` has no copy: the others in sync have all that is safe."""
        command = f"korvet-fast partition lead {log.replace(':', ' ')} --broker"
        others = [str(broker) for broker in self.isr if broker != lost]
        if others:
            return f"in sync is broker {' or '.join(others)}, so name that: {command} {others[0]}"
        return (
            f"no other broker is in sync. How much one lacks is told by {command} N --unclean. If nobody has it, name "
            f"this broker: --broker {lost} --unclean"
        )


def begin_state(topic: str, replicas: Sequence[int]) -> PartitionState:
    """The state of a new partition."""
    return PartitionState(topic, 0, replicas[0], -1, tuple(sorted(replicas)))


def unpack_state(log: str, document: bytes) -> PartitionState:
    """Read a state that `PartitionState.pack` wrote. Raises `CannotLead` if it is damaged."""
    try:
        values = json.loads(document)
        return PartitionState(**values | {"isr": tuple(values["isr"])})
    except (ValueError, KeyError, TypeError) as error:
        raise CannotLead(
            f"{log}: its state, {PREFIX}{log} in @registry, is damaged ({error!r}). Nobody leads it until the document "
            "is written again, or the topic is deleted"
        ) from error


def find_present(state: PartitionState | None, topic: str, replicas: Sequence[int]) -> PartitionState:
    """The state in the metadata log, or that of a new partition: the one of an earlier topic's does not count."""
    return state if state is not None and state.topic == topic else begin_state(topic, replicas)


def spread(partitions: int, factor: int, brokers: Sequence[int], begin: int) -> list[list[int]]:
    """The replicas of each partition, the first to lead: every broker leads as many as any other, but for one.

    `begin`: which broker has the first partition, counted round. The followers of the partitions that one broker leads
    are spread over the others.
    """
    count = len(brokers)
    rows = []
    for index in range(partitions):
        first, skipped = (begin + index) % count, (index // count) % max(1, count - 1)
        others = [brokers[(first + 1 + (skipped + step) % (count - 1)) % count] for step in range(factor - 1)]
        rows.append([brokers[first], *others])
    return rows
