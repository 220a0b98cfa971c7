"""Placement of a new topic: the brokers that get copies, and the number of copies that acks=all asks for."""

from collections.abc import Mapping, Sequence
from typing import Final

from korvet_fast.config import Settings, Source
from korvet_fast.core.replication.partition_state import spread
from korvet_fast.errors import Errors, KorvetError

_FACTOR: Final = "default.replication.factor"
_MINIMUM: Final = "min.insync.replicas"
_USUAL: Final = 3  # copies where nobody says how many, and there are so many brokers


class Placement:
    """Over these brokers, by id."""

    def __init__(self, brokers: Sequence[int], settings: Settings) -> None:
        self._brokers = brokers
        self._settings = settings

    def place(self, partitions: int, factor: int, begin: int) -> list[list[int]]:
        """The replicas of a new topic's partitions; `factor` -1: as many as usual. `begin`: see `spread`.

        Raises `KorvetError` INVALID_REPLICATION_FACTOR.
        """
        count = len(self._brokers)
        if factor == -1:
            given = self._settings.source(_FACTOR) is not Source.DEFAULT
            factor = self._settings.number(_FACTOR) if given else min(_USUAL, count)
        if not 1 <= factor <= count:
            raise KorvetError(
                Errors.INVALID_REPLICATION_FACTOR, f"{factor} copies are asked for, and there are {count} brokers"
            )
        return spread(partitions, factor, self._brokers, begin)

    def place_more(self, present: Sequence[Sequence[int]], total: int) -> list[Sequence[int]]:
        """The replicas of `total` partitions, of which those at `present` are as they are."""
        first = present[0][0]
        begin = self._brokers.index(first) if first in self._brokers else 0
        factor = min(len(present[0]), len(self._brokers))
        return [*present, *spread(total, factor, self._brokers, begin)[len(present) :]]

    def complete(self, configs: Mapping[str, str | None], factor: int) -> dict[str, str | None]:
        """A new topic's settings: most copies count for acks=all, unless somebody says how many."""
        if _MINIMUM in configs or self._settings.source(_MINIMUM) is not Source.DEFAULT:
            return dict(configs)
        return {**configs, _MINIMUM: str(factor // 2 + 1)}
