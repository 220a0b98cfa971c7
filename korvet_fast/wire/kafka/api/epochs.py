"""The rule for a leader epoch that a client names: it must be the present one (KIP-320)."""

from korvet_fast.core.partition import Partition
from korvet_fast.errors import KorvetError


def check_epoch(partition: Partition, given: int) -> None:
    """Raises `KorvetError` FENCED_LEADER_EPOCH or UNKNOWN_LEADER_EPOCH; -1 names none and is always right."""
    if given != -1 and given != (known := partition.leader_epoch):
        name = "FENCED_LEADER_EPOCH" if given < known else "UNKNOWN_LEADER_EPOCH"
        raise KorvetError(name, f"epoch {given} was given, the partition is at {known}")
