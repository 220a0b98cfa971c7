"""`send_many`: a column becomes runs of rows, and these are offered as fast as there is memory."""

import asyncio
from collections.abc import Iterable
from typing import Any

from korvet_fast._native import ColumnRows, RowRun
from korvet_fast.client.producer.driver import Driver
from korvet_fast.client.producer.message import (
    BATCH_HEADER,
    NO_LIMIT,
    DeliveryFailed,
    Expired,
    Message,
    encoded_size,
)
from korvet_fast.client.producer.rows import Column, ColumnMetadata, QueuedRows, read_column


class ColumnSender:
    """Sends one column. `partition`: for all rows, None for the partitioner's choice; `timestamp`: in ms, of all.

    `turn`: held while rows wait for memory, so that those of the next column do not pass them.
    """

    def __init__(self, driver: Driver, topic: str, partition: int | None, timestamp: int, turn: asyncio.Lock) -> None:
        self._driver = driver
        self._config = driver.pipeline.config
        self._topic = topic
        self._partition = partition
        self._timestamp = timestamp
        self._turn = turn
        self._transaction = driver.transaction

    async def send(self, keys: Any, values: Any) -> ColumnMetadata:
        """Send all rows and wait for their ends. Raises `RowsFailed`; `DeliveryFailed` for a topic that is refused, or
        that is not found.
        """
        key_cells = None if keys is None else read_column(keys)
        cells = read_column(values)
        if key_cells is not None and len(key_cells) != len(cells):
            raise ValueError(f"{len(key_cells):,} keys for {len(cells):,} values; give one for each, or None")
        rows = ColumnRows(key_cells, cells)
        column = Column(self._topic, len(rows))
        async with self._turn:
            await self._find_partitions()
            for run in self._cut(rows, key_cells):
                partition = run.partition if self._partition is None else self._partition
                await self._enqueue(column, QueuedRows(column, run, self._topic, partition, self._timestamp))
        await self._driver.wait(lambda: not column.open)
        if column.open:
            self._driver.pipeline.ledger.refuse()  # broken
        return column.result()

    async def _find_partitions(self) -> None:
        topic = self._driver.pipeline.dispatcher.topic(self._topic)
        topic.awaited += 1
        topic.refused = False  # it is asked for again
        ledger = self._driver.pipeline.ledger
        self._driver.schedule()
        try:
            async with asyncio.timeout(self._config.max_block):
                await self._driver.wait(lambda: topic.count > 0 or topic.refused or ledger.closing)
        except TimeoutError:
            what = f"the partitions of topic {self._topic!r} were not found"
            raise Expired.within(what, "max.block.ms", self._config.max_block, topic.last_error) from None
        finally:
            topic.awaited -= 1
        ledger.refuse()
        if topic.refused and not topic.count:
            raise DeliveryFailed(str(topic.last_error), cause=topic.last_error)

    def _cut(self, rows: ColumnRows, keys: Iterable[bytes | None] | None) -> list[RowRun]:
        chosen = None
        if self._partition is None and keys is not None:
            chosen = self._driver.pipeline.dispatcher.topic(self._topic).choose_rows(rows, keys)
        most = min(self._config.dialect.most_rows, self._config.batch_messages or NO_LIMIT)
        return rows.runs(chosen, self._config.batch_limit, most)

    async def _enqueue(self, column: Column, rows: QueuedRows) -> None:
        """Wait for memory. What cannot be accepted fails in the result."""
        try:
            self._check(rows)
            await self._driver.enqueue(rows, self._transaction)
        except DeliveryFailed as error:
            column.refuse(rows.rows, error)

    def _check(self, rows: QueuedRows) -> None:
        most, check = self._config.message_bytes, self._config.dialect.check
        if check is not None:
            for key, value in zip(rows.row_keys(), rows.row_values(), strict=True):
                check(Message(self._topic, value, key, partition=self._partition))
        if rows.size + BATCH_HEADER <= most:
            return
        for row, key, value in zip(rows.rows.rows(), rows.row_keys(), rows.row_values(), strict=True):
            size = encoded_size(value, key, ())
            if size > most:
                raise DeliveryFailed(f"row {row} of {size:,} bytes is above max.request.size={most:,}; raise it")
