"""One connection for Metadata and InitProducerId, apart from those that carry batches: a slow leader delays no news."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from korvet_fast.client.connection import Connection, connect
from korvet_fast.client.producer.config import ProducerConfig
from korvet_fast.client.producer.message import ProducerClosed
from korvet_fast.client.protocol.errors import BrokerError, ClientError, Unreachable
from korvet_fast.endpoint import Address
from korvet_fast.wire.kafka.shapes.message import Message


async def connect_in_time(address: Address, config: ProducerConfig) -> Connection:
    """A connection, made within its own limit; answers have another one. Raises `ClientError`."""
    limit = config.connect_timeout
    try:
        async with asyncio.timeout(limit):
            return await connect(address, config.request_timeout, config.answer_bytes, config.security)
    except TimeoutError:
        raise Unreachable(f"{address} did not take a connection within {limit:g} s") from None


class ControlConnection:
    """Asks any broker, and after a failure the next one. `brokers`: those that are known by now."""

    def __init__(
        self, bootstrap: Sequence[Address], brokers: Callable[[], Sequence[Address]], config: ProducerConfig
    ) -> None:
        self._bootstrap = bootstrap
        self._brokers = brokers
        self._config = config
        self._connection: Connection | None = None
        self._turn = 0
        self._ended = False
        self._connecting = asyncio.Lock()

    async def request(
        self, message: Message, values: Mapping[str, Any], check: Callable[[Mapping[str, Any]], object] | None = None
    ) -> dict[str, Any]:
        """Ask one broker. Raises `ClientError`; then the next call asks another one.

        `check`: raises `BrokerError` for an answer that refuses, which is no reason to ask another one, and
        `ClientError` for one that cannot be.
        """
        async with self._connecting:
            connection = self._connection
            if connection is None or connection.failure is not None:
                self.refuse_ended()
                try:
                    connection = await connect_in_time(self._next(), self._config)
                except ClientError:
                    self._turn += 1
                    raise
                self._connection = await self.keep(connection)
        try:
            answer = await connection.request(message, values)
            if check is not None:
                check(answer)
            return answer
        except ClientError as error:
            refused = isinstance(error, BrokerError) and connection.failure is None
            if not refused and self._connection is connection:  # else another request that failed with it has closed it
                self._turn += 1
                await self.close()
            raise

    async def keep(self, connection: Connection) -> Connection:
        """A connection that was just made, unless this has been closed meanwhile: then it is closed too."""
        if self._ended:
            await connection.close()
        self.refuse_ended()
        return connection

    def refuse_ended(self) -> None:
        """Raise `ProducerClosed` after `end`."""
        if self._ended:
            raise ProducerClosed("the producer is closed; it asks brokers nothing any more")

    async def end(self) -> None:
        """Close for good."""
        self._ended = True
        await self.close()

    async def close(self) -> None:
        """Close the connection, if there is one."""
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close()

    def _next(self) -> Address:
        candidates = list(dict.fromkeys([*self._bootstrap, *self._brokers()]))
        return candidates[self._turn % len(candidates)]
