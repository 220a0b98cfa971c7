"""The broker's own connection over a transport that goes nowhere: one request in flight, the next after its reply.

It may be inside TLS, or behind ACLs.
"""

import asyncio
import ssl
import tempfile
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager
from itertools import cycle, islice
from math import inf
from pathlib import Path
from typing import Any, Final

from benchmarks.requests.discard import Discard
from korvet_fast.cli.authority import open_authority
from korvet_fast.config import read_settings
from korvet_fast.core.acls.binding import AclBinding
from korvet_fast.core.broker import Broker
from korvet_fast.core.fair_executor import FairExecutor
from korvet_fast.core.fair_queue import FairQueue
from korvet_fast.endpoint import KAFKA, Endpoint
from korvet_fast.net.busy_poll import BusyPoll
from korvet_fast.net.certificates import CertificateFiles, Certificates
from korvet_fast.net.connection import WINDOW, Connection
from korvet_fast.net.limits import Limits, ServerLimits
from korvet_fast.net.pool import Pool
from korvet_fast.net.serve import WORKERS
from korvet_fast.net.server_context import ServerContext
from korvet_fast.net.tls import TlsTransport
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
        self._frames: Iterator[bytes] = iter(())
        self._over: asyncio.Future[None] | None = None
        self.reply: list[Buffer] = []
        self.broken = False
        self._protocol = self._connect(context, dialect)
        self._protocol.connection_made(self)

    def _connect(self, context: ServerContext[Connection], dialect: KafkaDialect) -> Connection | TlsTransport:
        """What a socket would hand its bytes to."""
        return Connection(dialect, context)

    async def ask(self, frames: Sequence[bytes], times: int = 1) -> bytes:
        """Send these requests one after the other, so many times; the last reply, without its length.

        Raises `ConnectionError` if the broker hangs up.
        """
        await self.send(self.prepare(frames, times))
        return self.read()

    def prepare(self, frames: Sequence[bytes], times: int) -> Iterable[bytes]:
        """The bytes of these requests, so many times: what a client does, and is not measured."""
        return islice(cycle(frames), times * len(frames))

    async def send(self, prepared: Iterable[bytes]) -> None:
        """Send requests one after the other. Raises `ConnectionError` if the broker hangs up."""
        self._over = self._loop.create_future()
        self._frames = iter(prepared)
        self._send()
        await self._over

    def read(self) -> bytes:
        """The last reply, without its length: what a client does, and is not measured."""
        return b"".join(map(bytes, self.reply))[4:]

    def _send(self) -> None:
        assert self._over is not None
        frame = next(self._frames, None)
        if frame is None:
            self._over.set_result(None)
            return
        self._feed(frame)

    def _feed(self, data: bytes) -> None:
        window = self._protocol.get_buffer(-1)
        size = len(window)
        for at in range(0, len(data), size):
            part = data[at : at + size]
            window[: len(part)] = part  # as the kernel would
            self._protocol.buffer_updated(len(part))

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


class TlsWire(Wire):
    """The same inside TLS. Requests are encrypted before they are sent, and replies decrypted when all have come."""

    def __init__(self, context: ServerContext[Connection], dialect: KafkaDialect, place: Path) -> None:
        authority = open_authority(place)
        self._files = CertificateFiles(authority.issue_server(["broker.test"], 1), None, "none")
        trusting = ssl.create_default_context(cafile=place / "ca.pem")
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = trusting.wrap_bio(self._incoming, self._outgoing, server_hostname="broker.test")
        self._due = False  # the next request is sent with the next turn of the loop
        super().__init__(context, dialect)

    def _connect(self, context: ServerContext[Connection], dialect: KafkaDialect) -> Connection | TlsTransport:
        return TlsTransport(Connection(dialect, context, encrypted=True), Certificates(self._files), context)

    async def shake_hands(self) -> None:
        """Do what comes before the first request."""
        established = False
        while not established:
            try:
                self._tls.do_handshake()
                established = True
            except ssl.SSLWantReadError:
                pass
            if self._outgoing.pending:
                self._feed(self._outgoing.read())
            await asyncio.sleep(0)

    def prepare(self, frames: Sequence[bytes], times: int) -> Iterable[bytes]:
        return [self._encrypt(frame) for frame in super().prepare(frames, times)]

    def _encrypt(self, frame: bytes) -> bytes:
        self._tls.write(frame)
        return self._outgoing.read()

    def read(self) -> bytes:
        data = bytearray()
        while self._incoming.pending or self._tls.pending():
            data += self._tls.read(1 << 20)
        at = 0
        while (end := at + 4 + int.from_bytes(data[at : at + 4], "big")) < len(data):
            at = end
        return bytes(data[at + 4 :])

    def write(self, data: Any) -> None:
        self._incoming.write(data)
        if self._over is not None and not self._due:
            self._due = True
            self._loop.call_soon(self._send)

    def _send(self) -> None:
        self._due = False
        super()._send()


class _Drowsy(BusyPoll):
    """Without a socket there is nothing to look out for."""

    def prolong(self, now: float, under_way: int) -> None:
        """Sleep."""


@asynccontextmanager
async def open_wire(
    *settings: str, bindings: Sequence[AclBinding] = (), encrypted: bool = False
) -> AsyncIterator[Wire]:
    """A connection to a broker of this process over a store that discards.

    `settings`: more of them. `bindings`: ACLs that there are, if an authorizer is set. `encrypted`: inside TLS.
    """
    broker = Broker(Discard(), read_settings((*SETTINGS, *settings)))
    await broker.open([Endpoint(KAFKA, "broker.test", 9092)])
    if broker.acls is not None:
        await broker.acls.create(bindings, "User:bench")
    workers = FairExecutor(WORKERS, "check")
    dialect = KafkaDialect(broker, 0, workers)
    loop = asyncio.get_running_loop()
    pool = Pool(ServerLimits().pool, lambda: None)
    window, ciphertext = memoryview(bytearray(WINDOW)), memoryview(bytearray(WINDOW))
    drowsy, ignore = _Drowsy(), lambda _: None
    queue = FairQueue(noted=inf)  # under callgrind everything takes long
    context: ServerContext[Connection] = ServerContext(
        window, ciphertext, pool, queue, Limits(), RateLimitedLog(loop.time), drowsy, ignore, ignore
    )
    try:
        if encrypted:
            with tempfile.TemporaryDirectory() as place:
                wire = TlsWire(context, dialect, Path(place))
                await wire.shake_hands()
                yield wire
        else:
            yield Wire(context, dialect)
    finally:
        workers.shutdown()
        await broker.close()
