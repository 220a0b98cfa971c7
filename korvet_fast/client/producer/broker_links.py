"""The connections that carry batches, for asyncio: one for each broker, and a task for each request on its way."""

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine
from typing import Any

from korvet_fast.client.producer.broker_producer import ProduceRequest
from korvet_fast.client.producer.pipeline import Pipeline
from korvet_fast.client.producer.wires import WIRES, BrokerConnection
from korvet_fast.client.protocol.errors import ClientError, Unreachable
from korvet_fast.endpoint import Address
from korvet_fast.rate_limited_log import RateLimitedLog

_log = logging.getLogger(__name__)


class BrokerLinks:
    """Does what the pipeline wants done with brokers, and tells it what came of it. `changed`: called after that.

    `on_defect`: called with what else a task raised."""

    def __init__(
        self, pipeline: Pipeline, changed: Callable[[], None], on_defect: Callable[[BaseException], None]
    ) -> None:
        self._pipeline = pipeline
        self._config = pipeline.config
        self._changed = changed
        self._on_defect = on_defect
        self._wire = WIRES[self._config.dialect.scheme]
        self._log = RateLimitedLog(time.monotonic, log=__name__)
        self._connections: dict[Address, BrokerConnection] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def connect(self, address: Address) -> None:
        """Connect to a broker, and watch the connection until it ends."""
        self.start(self._keep(address))

    def disconnect(self, address: Address) -> None:
        """Close the connection to a broker that is not needed any more."""
        connection = self._connections.pop(address, None)
        if connection is not None:
            self.start(connection.close())

    def produce(self, address: Address, request: ProduceRequest) -> None:
        """Send a request. Requests to one broker leave in the order of these calls."""
        self.start(self._exchange(address, request))

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        """Run a coroutine that ends with the producer, at the latest."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._end)

    def cancel(self) -> None:
        """From here on the pipeline is told nothing."""
        for task in self._tasks:
            task.cancel()

    def _end(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        error = None if task.cancelled() else task.exception()
        if error is not None:
            self._on_defect(error)

    async def close(self) -> None:
        """Close all connections and end all tasks, and wait until they have ended."""
        connections = list(self._connections.values())
        self._connections.clear()
        tasks = list(self._tasks)
        self.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for connection in connections:
            await connection.close()

    async def _keep(self, address: Address) -> None:
        loop = asyncio.get_running_loop()
        try:
            connection = await self._open(address)
        except ClientError as error:
            self._log.warn("connect", str(error))
            self._pipeline.lost(address, error, loop.time())
            self._changed()
            return
        self._connections[address] = connection
        self._pipeline.connected(address, loop.time())
        self._changed()
        await connection.wait_closed()
        if self._connections.get(address) is connection:
            del self._connections[address]
            assert connection.failure is not None, "closed"
            _log.info("%s", connection.failure)
            self._pipeline.lost(address, connection.failure, loop.time())
            self._changed()

    async def _open(self, address: Address) -> BrokerConnection:
        limit = self._config.connect_timeout
        try:
            async with asyncio.timeout(limit):
                connection: BrokerConnection = await self._wire.connect(address, self._config)
        except TimeoutError:
            raise Unreachable(f"{address} did not take a connection within {limit:g} s") from None
        return connection

    async def _exchange(self, address: Address, request: ProduceRequest) -> None:
        connection = self._connections.get(address)
        loop = asyncio.get_running_loop()
        if connection is None or connection.failure is not None:
            error = (connection and connection.failure) or Unreachable(f"the connection to {address} is gone")
            self._pipeline.not_sent(address, request, error, loop.time())
            self._changed()
            return
        try:
            answer = await self._wire.produce(connection, request, self._config)
        except ClientError:
            return  # the connection is closed: whoever watches it tells the pipeline, for all its requests
        self._pipeline.answered(address, request, answer, loop.time())
        self._changed()
