"""`send_many`: a column becomes runs of rows, and these are offered as fast as there is memory."""

import asyncio
from collections.abc import Iterator, Sequence
from typing import Any

from korvet_fast.client.producer.driver import Driver
from korvet_fast.client.producer.message import (
    BATCH_HEADER,
    DeliveryFailed,
    Expired,
    ProducerClosed,
    encoded_size,
)
from korvet_fast.client.producer.rows import Column, ColumnMetadata, Rows, cut_runs, group_rows, read_column

Cells = list[bytes | None]


class ColumnSender:
    """Sends one column. `partition`: for all rows, None for the partitioner's choice; `timestamp`: in ms, of all."""

    def __init__(self, driver: Driver, topic: str, partition: int | None, timestamp: int) -> None:
        self._driver = driver
        self._config = driver.pipeline.config
        self._topic = topic
        self._partition = partition
        self._timestamp = timestamp

    async def send(self, keys: Any, values: Any) -> ColumnMetadata:
        """Send all rows and wait for their ends. Raises `RowsFailed`; `DeliveryFailed` if the topic is not found."""
        cells = read_column("values", values)
        key_cells = None if keys is None else read_column("keys", keys)
        if key_cells is not None and len(key_cells) != len(cells):
            raise ValueError(f"{len(key_cells):,} keys for {len(cells):,} values; give one for each, or None")
        column = Column(self._topic, len(cells))
        await self._find_partitions()
        for rows in self._cut(column, cells, key_cells):
            await self._offer(column, rows)
        await self._driver.wait(lambda: not column.open)
        return column.result()

    async def _find_partitions(self) -> None:
        topic = self._driver.pipeline.dispatcher.topic(self._topic)
        topic.awaited = True
        ledger = self._driver.pipeline.ledger
        self._driver.schedule()
        try:
            async with asyncio.timeout(self._config.max_block):
                await self._driver.wait(lambda: topic.count > 0 or ledger.closing)
        except TimeoutError:
            limit = f"max.block.ms ({self._config.max_block:g} s)"
            raise Expired(f"the partitions of topic {self._topic!r} were not found within {limit}") from None
        if ledger.closing:
            raise ProducerClosed("the producer is closed; it takes no more messages")

    def _cut(self, column: Column, values: Cells, keys: Cells | None) -> Iterator[Rows]:
        topic = self._driver.pipeline.dispatcher.topic(self._topic)
        if self._partition is not None or keys is None:
            groups: dict[int, Sequence[int]] = {-1 if self._partition is None else self._partition: range(len(values))}
        else:
            groups = {**group_rows(keys, lambda key: topic.choose_index(key, 0))}
        for partition, rows in groups.items():
            own = values if len(rows) == len(values) else [values[row] for row in rows]
            own_keys = None if keys is None else [keys[row] for row in rows]
            for run in cut_runs(own, own_keys, self._config.batch_limit):
                part = own_keys[run] if own_keys is not None else None
                yield Rows(column, rows[run], self._topic, own[run], part, partition, self._timestamp)

    async def _offer(self, column: Column, rows: Rows) -> None:
        """Wait for memory. What cannot be accepted fails in the result."""
        try:
            self._check_sizes(rows)
            await self._driver.offer(rows)
        except DeliveryFailed as error:
            column.refuse(rows.rows, error)

    def _check_sizes(self, rows: Rows) -> None:
        most = self._config.message_bytes
        if rows.size + BATCH_HEADER <= most:
            return
        for at, value in enumerate(rows.values):
            size = encoded_size(value, rows.keys[at] if rows.keys else None, ())
            if size > most:
                row = rows.rows[at]
                raise DeliveryFailed(f"row {row} of {size:,} bytes is above max.request.size={most:,}; raise it")
