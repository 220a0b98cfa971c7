"""A connection that carries batches without Kafka's requests: for the text protocol and for Kafka 0.7."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import Any, cast

from korvet_fast.client.producer.broker_producer import ProduceRequest
from korvet_fast.client.protocol.errors import ClientError, ConnectionLost, os_reason
from korvet_fast.endpoint import Address


class ProduceStream(asyncio.Protocol, ABC):
    """`failure`: why the connection is closed; None while it is open. `patience`: seconds that a request may take."""

    def __init__(self, endpoint: Address, patience: float) -> None:
        self.endpoint = endpoint
        self.failure: ClientError | None = None
        self._patience = patience
        self._transport: asyncio.Transport | None = None
        self._writable = asyncio.Event()
        self._writable.set()
        self._disconnected = asyncio.Event()

    @abstractmethod
    async def produce(self, request: ProduceRequest) -> Mapping[str, Any] | None:
        """Send a request; returns when it has ended. Raises `ClientError`; then the connection is closed."""

    async def wait_closed(self) -> None:
        """Wait until the connection is closed, whoever closes it."""
        await self._disconnected.wait()

    async def close(self) -> None:
        """Close the connection. What the system has taken is still sent."""
        self._fail(ConnectionLost(f"the connection to {self.endpoint} was closed"))
        await self._disconnected.wait()

    def _write(self, parts: Iterable[bytes | memoryview]) -> None:
        assert self._transport is not None, "connected"
        self._transport.writelines(parts)

    def _fail(self, failure: ClientError) -> ClientError:
        """End the connection: returns the first failure, which stays."""
        self.failure = self.failure or failure
        if self._transport is not None:
            self._transport.abort()
        self._writable.set()
        return self.failure

    # The methods that asyncio calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(0)  # writable: the system has everything

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    def connection_lost(self, error: Exception | None) -> None:
        if error is None:
            reason = f"{self.endpoint} closed the connection"
        else:
            told = os_reason(error) if isinstance(error, OSError) else str(error)
            reason = f"lost the connection to {self.endpoint}: {told}"
        self._fail(ConnectionLost(reason))
        self._disconnected.set()
