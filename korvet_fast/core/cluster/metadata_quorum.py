"""The brokers that keep the cluster's metadata, and how far each of them is."""

from collections.abc import Mapping
from typing import NamedTuple


class MetadataQuorum(NamedTuple):
    """The leader, and the voters with the end of each one's log. -1: there is no such number, or it is not known."""

    leader: int
    epoch: int
    high_watermark: int
    ends: Mapping[int, int]

    @classmethod
    def of_one(cls, broker: int) -> "MetadataQuorum":
        """Nobody copies the metadata: this broker is the one voter."""
        return cls(broker, -1, -1, {broker: -1})
