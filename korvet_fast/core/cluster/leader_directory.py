"""The real leaders of partitions: every broker writes down the partitions it leads, with their leader epochs.

A broker also goes on writing down the epoch under which it led, until it knows that somebody has led since.

The store gives an epoch of a log to one broker only. So a pair of leader and epoch stays true for ever, and the highest
epoch is the present one. Nothing is guessed: a client keeps to the highest epoch it was told of (KIP-320), and would
stay with a wrong leader. Epochs of brokers that are gone are kept: a client that is told of no epoch forgets the
highest, and believes a former leader.
"""

import asyncio
import json
from collections.abc import Collection, Iterable, Sequence
from typing import Final

from korvet_fast.core.fair_queue import BackgroundPace
from korvet_fast.core.generation import MetadataVersion
from korvet_fast.core.topics.topic import Topic
from korvet_fast.store.interface import Store
from korvet_fast.store.types import ABSENT

PREFIX: Final = "leads/"  # registry key: this and the broker's id; topic id in hex -> partition -> leader epoch
NOBODY: Final = (-1, -1)
_AT_ONCE: Final = 500  # partitions between two looks at the clock


class LeaderDirectory:
    """The leaders that other brokers named by the last `refresh`, and those that this broker names to them."""

    def __init__(self, store: Store, metadata: MetadataVersion) -> None:
        self._store = store
        self._metadata = metadata
        self._found: dict[tuple[bytes, int], tuple[int, int]] = {}
        self._seen: tuple[int, frozenset[int]] | None = None  # count of changes, and the brokers that were read
        self._told: bytes | None = None  # one block: tables for each topic would keep a MiB here and there
        self._told_at = -1  # `MetadataVersion.number` then
        self._document: bytes | None = ABSENT
        self._telling = asyncio.Lock()

    def find(self, topic: bytes, index: int) -> tuple[int, int]:
        """The highest epoch that a broker names, and that broker's id.

        The id is -1 if no broker names one now; the epoch is then the highest that one ever named, or -1.
        """
        return self._found.get((topic, index), NOBODY)

    @property
    def highest(self) -> int:
        """The highest epoch of all; -1 if there is none."""
        return max((epoch for epoch, _ in self._found.values()), default=-1)

    async def refresh(self, brokers: Collection[int]) -> bool:
        """Read the documents of these brokers; returns whether they have changed. Raises `StoreError`."""
        store = self._store
        if store.shared is None:
            return False
        seen = await store.shared.version(PREFIX), frozenset(brokers)
        if seen == self._seen:
            return False
        found: dict[tuple[bytes, int], tuple[int, int]] = {}
        for key, document in (await store.scan(PREFIX)).items():
            broker = int(key.removeprefix(PREFIX))
            if broker not in brokers:
                continue
            for topic, epochs in json.loads(document).items():
                for index, epoch in epochs.items():
                    place = bytes.fromhex(topic), int(index)
                    found[place] = max(found.get(place, NOBODY), (epoch, broker))
        for place, (epoch, _) in self._found.items():
            found.setdefault(place, (epoch, -1))
        self._seen = seen
        if found == self._found:
            return False
        self._found = found
        self._metadata.advance()
        return True

    async def tell(self, broker: int, topics: Iterable[Topic]) -> None:
        """Tell the others which partitions this broker leads, or led last, if that has changed. Raises `StoreError`.

        Tens of thousands of partitions are gone through in slices. What changes meanwhile is told the next time.
        """
        async with self._telling:
            version = self._metadata.number
            if version == self._told_at:
                return
            present = list(topics)
            document = await self._describe(present)
            if document != self._told:
                await self._write(broker, document)
                self._told = document
            self._told_at = version
            self._forget({topic.id for topic in present})

    async def _describe(self, topics: Sequence[Topic]) -> bytes:
        pace = BackgroundPace()
        described: list[str] = []
        for topic in topics:
            rows: list[str] = []
            for start in range(0, len(topic.partitions), _AT_ONCE):
                if epochs := self._list_epochs(topic, start):
                    rows.append(json.dumps(epochs, separators=(",", ":"))[1:-1])
                if pace.due():
                    await pace.turn()
            if rows:
                described.append(f'"{topic.id.hex()}":{{{",".join(rows)}}}')
        return f"{{{','.join(described)}}}".encode()

    def _list_epochs(self, topic: Topic, start: int) -> dict[int, int]:
        """For some partitions from `start` on: the epoch under which this broker leads.

        Or did lead, if nobody is known to have led since.

        Clients that were told of an epoch take no lower one: a broker that leads under a lower one acquires the log
        anew.
        """
        return {
            one.index: one.leadership.epoch
            for one in topic.partitions[start : start + _AT_ONCE]
            if one.leadership.leads or one.leadership.epoch > self.find(topic.id, one.index)[0]
        }

    def _forget(self, topics: Collection[bytes]) -> None:
        """Keep the epochs of brokers that are gone for these topics only: others were deleted."""
        self._found = {place: row for place, row in self._found.items() if row[1] >= 0 or place[0] in topics}

    async def _write(self, broker: int, document: bytes) -> None:
        store, key = self._store, f"{PREFIX}{broker}"
        # The stored document may come from an earlier start, or from this one if an answer was lost.
        while not await store.save(key, document, self._document):
            self._document = await store.load(key)
        self._document = document
