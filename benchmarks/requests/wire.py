"""The broker's own connection over a transport that goes nowhere: one request in flight, the next after its reply."""

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from itertools import cycle, islice
from math import inf
from typing import Any, Final

from benchmarks.requests.discard import Discard
from korvet_fast.config import read_settings
from korvet_fast.core.broker import Broker
from korvet_fast.core.fair_executor import FairExecutor
from korvet_fast.core.fair_queue import FairQueue
from korvet_fast.endpoint import KAFKA, Endpoint
from korvet_fast.net.busy_poll import BusyPoll
from korvet_fast.net.connection import WINDOW, Connection
from korvet_fast.net.limits import Limits, ServerLimits
from korvet_fast.net.pool import Pool
from korvet_fast.net.serve import WORKERS
from korvet_fast.net.server_context import ServerContext
from korvet_fast.rate_limited_log import RateLimitedLog
from korvet_fast.types import Buffer
from korvet_fast.wire.kafka.dialect import KafkaDialect

PATIENCE: Final = 1_800_000  # ms: no member of a group expires while the rest is measured, however slowly
SETTINGS = (
    "group.initial.rebalance.delay.ms=0",
    f"group.max.session.timeout.ms={PATIENCE}",
    f"group.consumer.session.timeout.ms={PATIENCE}",
)


class Wire(asyncio.Transport):
    """Stands where a socket would: takes replies and forgets all but the last one."""

    def __init__(self, context: ServerContext[Connection], dialect: KafkaDialect) -> None:
        super().__init__()
        self._loop = asyncio.get_running_loop()
        self._frames: Iterable[bytes] = ()
        self._over: asyncio.Future[None] | None = None
        self.reply: list[Buffer] = []
        self.broken = False
        self._connection = Connection(dialect, context)
        self._connection.connection_made(self)

    async def ask(self, frames: Sequence[bytes], times: int = 1) -> bytes:
        """Send these requests one after the other, so many times; the last reply, without its length.

        Raises `ConnectionError` if the broker hangs up.
        """
        self._over = self._loop.create_future()
        self._frames = islice(cycle(frames), times * len(frames))
        self._send()
        await self._over
        return b"".join(map(bytes, self.reply))[4:]

    def _send(self) -> None:
        assert self._over is not None
        frame = next(self._frames, None)  # type: ignore[call-overload]
        if frame is None:
            self._over.set_result(None)
            return
        window = self._connection.get_buffer(-1)
        for at in range(0, len(frame), WINDOW):
            part = frame[at : at + WINDOW]
            window[: len(part)] = part  # as the kernel would
            self._connection.buffer_updated(len(part))

    # Called by the connection

    def writelines(self, parts: Iterable[Any]) -> None:
        self.reply = list(parts)
        self._loop.call_soon(self._send)  # a request comes in with a turn of the loop

    def close(self) -> None:
        self.broken = True
        if self._over is not None and not self._over.done():
            self._over.set_exception(ConnectionError("the broker hung up on a request of the benchmark"))

    abort = close

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return default

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """Nothing is ever kept."""

    def get_write_buffer_size(self) -> int:
        return 0

    def pause_reading(self) -> None:
        """One request is in flight: there is nothing to hold back."""

    def resume_reading(self) -> None:
        """See `pause_reading`."""


class _Drowsy(BusyPoll):
    """Without a socket there is nothing to look out for."""

    def prolong(self, now: float) -> None:
        """Sleep."""


@asynccontextmanager
async def open_wire() -> AsyncIterator[Wire]:
    """A connection to a broker of this process over a store that discards."""
    broker = Broker(Discard(), read_settings(SETTINGS))
    await broker.open([Endpoint(KAFKA, "broker.test", 9092)])
    workers = FairExecutor(WORKERS, "check")
    dialect = KafkaDialect(broker, 0, workers)
    loop = asyncio.get_running_loop()
    pool = Pool(ServerLimits().pool, lambda: None)
    window = memoryview(bytearray(WINDOW))
    drowsy, ignore = _Drowsy(), lambda _: None
    queue = FairQueue(noted=inf)  # under callgrind everything takes long
    context: ServerContext[Connection] = ServerContext(
        window, pool, queue, Limits(), RateLimitedLog(loop.time), drowsy, ignore, ignore
    )
    try:
        yield Wire(context, dialect)
    finally:
        workers.shutdown()
        await broker.close()
