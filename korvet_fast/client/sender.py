"""Sends values to one topic in whole batches, several at a time; the batches of a partition keep their order.

Sends nothing twice. If an answer is missing, the batch may be stored or not: the error says which answer it was.
"""

import asyncio
import time
from array import array
from collections.abc import Sequence
from itertools import accumulate

from korvet_fast._native import build_batch
from korvet_fast.client.cluster import Cluster
from korvet_fast.client.protocol.errors import check_error_code
from korvet_fast.client.protocol.requests import produce_request, read_produce
from korvet_fast.wire.kafka.shapes.produce import PRODUCE

IN_FLIGHT = 5  # batches without an answer, as many as Kafka's producer has
ACKS = {"1": 1, "all": -1}


class Sender:
    """`send` values, then `finish`. `stored` counts the acknowledged values."""

    def __init__(
        self, cluster: Cluster, topic: str, partitions: Sequence[int], *, acks: int, compression: int, patience: float
    ) -> None:
        self.stored = 0
        self._cluster = cluster
        self._topic = topic
        self._partitions = partitions
        self._acks = acks
        self._compression = compression
        self._patience = patience
        self._turn = 0
        self._room = asyncio.Semaphore(IN_FLIGHT)
        self._in_flight: set[asyncio.Task[None]] = set()
        self._failure: BaseException | None = None

    async def send(self, values: list[bytes]) -> None:
        """Send one batch of records without keys; partitions take turns. Waits while too many have no answer.

        Raises `ClientError` if an earlier batch failed: then it sends nothing more, and `stored` is final.
        """
        batch = build_batch(value_columns(values), self._compression, 0, -1, -1, -1)
        partition = self._partitions[self._turn % len(self._partitions)]
        self._turn += 1
        await self._cluster.leader(self._topic, partition)  # connect now: the task below sends at once, in order
        await self._room.acquire()
        if self._failure is not None:
            self._room.release()
            await self.finish()
        task = asyncio.create_task(self._produce(batch, partition, len(values)))
        task.add_done_callback(self._finish_one)
        self._in_flight.add(task)

    async def finish(self) -> None:
        """Wait for every answer. Raises `ClientError` if any batch failed."""
        while self._in_flight:
            await asyncio.wait(self._in_flight)
        if self._failure is not None:
            raise self._failure

    async def _produce(self, batch: bytearray, partition: int, count: int) -> None:
        leader = await self._cluster.leader(self._topic, partition)
        where = self._topic, partition
        answer = await leader.request(PRODUCE, produce_request([(where, batch)], self._acks, self._patience))
        row = read_produce(answer)[where]
        check_error_code(f"partition {partition} of topic {self._topic!r}", row["error_code"], row["error_message"])
        self.stored += count

    def _finish_one(self, task: "asyncio.Task[None]") -> None:
        self._in_flight.discard(task)
        self._room.release()
        failure = None if task.cancelled() else task.exception()
        self._failure = self._failure or failure


def value_columns(values: list[bytes]) -> dict[str, bytes | memoryview]:
    """Values as columns for `build_batch`, all with the present time."""
    count = len(values)
    return {
        "timestamp": memoryview(array("q", [time.time_ns() // 1_000_000]) * count),
        "value_offsets": memoryview(array("i", accumulate(map(len, values), initial=0))),
        "value": b"".join(values),
        "value_valid": b"\1" * count,
    }
