"""A connection of Kafka 0.7: requests go out, and nothing comes back."""

import asyncio

from korvet_fast.client.producer.broker_producer import ProduceRequest
from korvet_fast.client.producer.legacy_messages import produce_head
from korvet_fast.client.producer.produce_stream import ProduceStream
from korvet_fast.client.protocol.errors import ClientError, ConnectionLost


class LegacyStream(ProduceStream):
    """A request has ended when the system has all of it."""

    async def produce(self, request: ProduceRequest) -> None:
        for partition, batch in request.batches:
            self._write((produce_head(partition.topic, partition.index, len(batch.data)), batch.data))
        try:
            async with asyncio.timeout(self._patience):
                await self._writable.wait()
        except TimeoutError:
            late = ConnectionLost(f"{self.endpoint} did not take all of a request within {self._patience:g} s")
            raise self._fail(late) from None
        if self.failure is not None:
            raise self.failure

    def data_received(self, data: bytes) -> None:
        self._fail(ClientError(f"{self.endpoint} is no broker of Kafka 0.7: it answers a PRODUCE"))
