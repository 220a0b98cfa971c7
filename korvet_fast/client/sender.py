"""Values to one topic: whole batches, several under way per partition leader, each partition's in order.

Nothing is sent twice: where an answer is missing nobody knows whether the batch was stored, and the error says so.
"""

import asyncio
import time
from array import array
from collections.abc import Sequence
from itertools import accumulate

from korvet_fast._native import assemble
from korvet_fast.client.cluster import Cluster
from korvet_fast.client.refusal import check
from korvet_fast.wire.kafka.shapes.produce import PRODUCE

IN_FLIGHT = 5  # batches sent and not answered, as many as Kafka's producer has
ACKS = {"1": 1, "all": -1}
COMPRESSIONS = {"none": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}


class Sender:
    """`send` values, then `finish`. `stored` counts the values acknowledged."""

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
        self._under_way: set[asyncio.Task[None]] = set()
        self._failure: BaseException | None = None

    async def send(self, values: list[bytes]) -> None:
        """One batch of records without keys, to the partitions in turn. Waits while too many are unanswered.

        Raises `ClientError` if an earlier batch failed: nothing further is sent, and `stored` is final.
        """
        batch = assemble(value_columns(values), self._compression, 0, -1, -1, -1)
        partition = self._partitions[self._turn % len(self._partitions)]
        self._turn += 1
        await self._cluster.leader(self._topic, partition)  # connected now, so that the task below sends at once
        await self._room.acquire()
        if self._failure is not None:
            self._room.release()
            await self.finish()
        task = asyncio.create_task(self._produce(batch, partition, len(values)))
        task.add_done_callback(self._finish_one)
        self._under_way.add(task)

    async def finish(self) -> None:
        """Wait for every answer. Raises `ClientError` if any batch failed."""
        while self._under_way:
            await asyncio.wait(self._under_way)
        if self._failure is not None:
            raise self._failure

    async def _produce(self, batch: bytearray, partition: int, count: int) -> None:
        leader = await self._cluster.leader(self._topic, partition)
        answer = await leader.request(
            PRODUCE,
            {
                "acks": self._acks,
                "timeout_ms": int(self._patience * 1000),
                "topic_data": [{"name": self._topic, "partition_data": [{"index": partition, "records": batch}]}],
            },
        )
        (found,) = answer["responses"][0]["partition_responses"]
        check(f"partition {partition} of topic {self._topic!r}", found["error_code"], found["error_message"])
        self.stored += count

    def _finish_one(self, task: "asyncio.Task[None]") -> None:
        self._under_way.discard(task)
        self._room.release()
        failure = None if task.cancelled() else task.exception()
        self._failure = self._failure or failure


def value_columns(values: list[bytes]) -> dict[str, bytes | memoryview]:
    """Values as columns for `assemble`, all with the time of now."""
    count = len(values)
    return {
        "timestamp": memoryview(array("q", [time.time_ns() // 1_000_000]) * count),
        "value_offsets": memoryview(array("i", accumulate(map(len, values), initial=0))),
        "value": b"".join(values),
        "value_valid": b"\1" * count,
    }
