"""The server: it accepts connections within their quotas, and closes those that are slow while memory is short."""

import asyncio
import errno
import logging
import socket
from collections import deque
from typing import NamedTuple

from korvet_fast.core.fair_queue import FairQueue
from korvet_fast.net.busy_poll import BusyPoll
from korvet_fast.net.certificates import Certificates
from korvet_fast.net.connection import WINDOW, Connection
from korvet_fast.net.limits import Limits, ServerLimits
from korvet_fast.net.pool import Pool
from korvet_fast.net.quota import ConnectionQuota, ConnectionRate, find_address
from korvet_fast.net.server_context import ServerContext
from korvet_fast.net.tls import TlsTransport
from korvet_fast.rate_limited_log import RateLimitedLog
from korvet_fast.wire.dialect import Dialect

log = logging.getLogger(__name__)

RELIEF = 0.25  # seconds between two attempts to free memory while it is short
OUT_OF_RESOURCES = {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM}
ASIDE = 2  # seconds that newcomers wait aside, about: more of them are refused


class Newcomer(NamedTuple):
    """A connection that was accepted and is not served yet."""

    sock: socket.socket
    ip: str
    dialect: Dialect
    certificates: Certificates | None


class Server:
    """The listeners of a broker and their connections. Use it on one running loop."""

    def __init__(self, server_limits: ServerLimits, limits: Limits, busy_poll: BusyPoll | None = None) -> None:
        self._loop = asyncio.get_running_loop()
        self._limits = limits
        self._most = server_limits.connections
        self._log = RateLimitedLog(self._loop.time)
        self.pool = Pool(server_limits.pool, self._relieve)
        self._relieving = False
        self._context: ServerContext[Connection] = ServerContext(
            memoryview(bytearray(WINDOW)),
            memoryview(b""),
            self.pool,
            FairQueue(),
            limits,
            self._log,
            busy_poll or BusyPoll(),
            self._greet,
            self._forget,
        )
        self.connections: dict[Connection, str] = {}  # with the address that each is counted for
        self._quota: ConnectionQuota[Connection] = ConnectionQuota(
            server_limits.connections, server_limits.per_ip, server_limits.why_fewer
        )
        self._accepting: dict[asyncio.Task[None], socket.socket] = {}
        self._rate = ConnectionRate(server_limits.rate)
        self._aside: deque[Newcomer] = deque()  # of addresses that have had their share of the rate
        self._letting_in: asyncio.Task[None] | None = None
        self._empty = asyncio.Event()
        self._empty.set()
        self._every = max(0.02, min(limits.idle, limits.frame, limits.stalled, 10.0) / 10)
        self._timer = self._loop.call_later(self._every, self._sweep)

    def listen(self, listener: socket.socket, dialect: Dialect, certificates: Certificates | None = None) -> None:
        """Serve `dialect` on `listener`: a listening socket that does not block, which the server owns from now on.

        With `certificates`, inside TLS.
        """
        if certificates is not None and not self._context.ciphertext:
            self._context = self._context._replace(ciphertext=memoryview(bytearray(WINDOW)))
        self._every = min(self._every, max(0.02, dialect.first_request.seconds / 10))
        self._accepting[self._loop.create_task(self._accept(listener, dialect, certificates))] = listener

    async def drain(self, grace: float) -> None:
        """Stop accepting, give requests under way `grace` seconds, close every connection."""
        ending = [*self._accepting, *([self._letting_in] if self._letting_in is not None else [])]
        for task in ending:
            task.cancel()
        await asyncio.gather(*ending, return_exceptions=True)
        for listener in (*self._accepting.values(), *(newcomer.sock for newcomer in self._aside)):
            listener.close()
        self._aside.clear()
        for connection in list(self.connections):
            connection.drain()
        try:
            await asyncio.wait_for(self._empty.wait(), grace)
        except TimeoutError:
            log.warning("%d connections did not finish within %g s and are cut off", len(self.connections), grace)
            for connection in list(self.connections):
                connection.abort()
            await self._empty.wait()
        self._timer.cancel()

    async def _accept(self, listener: socket.socket, dialect: Dialect, certificates: Certificates | None) -> None:
        # This loop stands in place of asyncio's server: it outlives every error of accept, and decides which clients
        # may connect.
        while True:
            try:
                newcomer, peer = await self._loop.sock_accept(listener)
            except OSError as error:
                self._log.warn("accept", f"cannot accept a connection now: {error}")
                # Most errors concern one connection; without descriptors none can be accepted for a while.
                await asyncio.sleep(0.1 if error.errno in OUT_OF_RESOURCES else 0)
                continue
            await self._receive(Newcomer(newcomer, str(peer[0]), dialect, certificates))

    async def _receive(self, newcomer: Newcomer) -> None:
        """Let a newcomer in as the rate allows, or have it wait aside."""
        wait = self._rate.enter(find_address(newcomer.ip), self._loop.time())
        if wait is None:
            self._set_aside(newcomer)
            await asyncio.sleep(0)  # where many connect at once, accepting the next one would not wait
            return
        try:
            if wait > 0:
                await asyncio.sleep(wait)
        except asyncio.CancelledError:
            newcomer.sock.close()
            raise
        await self._let_in(newcomer)

    def _set_aside(self, newcomer: Newcomer) -> None:
        """Have it wait where it keeps no other waiting, or refuse it if too many do."""
        places = self._most - len(self.connections)  # each has a descriptor
        too_many = len(self._aside) >= ASIDE * self._rate.limit
        if too_many or len(self._aside) >= places:
            newcomer.sock.close()
            reached = f"max.connection.creation.rate={self._rate.limit} is reached"
            why = "too many wait" if too_many else self._quota.why_full
            self._log.warn("rate", f"refused a connection of {newcomer.ip}: {reached}, and {why}")
            return
        self._aside.append(newcomer)
        if self._letting_in is None or self._letting_in.done():
            self._letting_in = self._loop.create_task(self._let_in_aside())

    async def _let_in_aside(self) -> None:
        while self._aside:
            if (wait := self._rate.all.find_wait(self._loop.time())) > 0:
                await asyncio.sleep(wait)
            else:
                self._rate.all.enter(self._loop.time())
                await self._let_in(self._aside.popleft())

    async def _let_in(self, newcomer: Newcomer) -> None:
        """Serve a newcomer, if there is room for it."""
        try:
            if self._may_enter(newcomer.ip):
                await self._serve(*newcomer)
            else:
                newcomer.sock.close()
                await asyncio.sleep(0)
        except Exception as error:  # noqa: BLE001  a bug of ours must not keep every later client out
            newcomer.sock.close()
            self._log.error("accept", f"cannot serve a connection of {newcomer.ip}: {error}", error)

    def _may_enter(self, ip: str) -> bool:
        """Whether there is room for another connection; if not, a silent or an idle one is closed to make room."""
        address = find_address(ip)
        refusal = self._quota.refusal(address)
        if refusal is None:
            return True
        reason, leaves = refusal
        why = "that sent no request"
        if leaves is None:
            leaves, why = self._find_idle(address), "that had no request under way, of the address that holds most"
        if leaves is None:
            self._log.warn("refused", f"refused a connection of {ip}: {reason}")
            return False
        self._log.warn("silent", f"closed a connection of {leaves.peer} {why}: {reason}")
        leaves.abort()
        self._forget(leaves)
        return True

    def _find_idle(self, address: str) -> Connection | None:
        """The connection idle for longest of the address that holds most, if a newcomer's address holds fewer.

        Where none is idle, one whose request is not complete: a byte of it would hold a place for ever.
        """
        largest = self._quota.find_largest(address)
        if largest is None:
            return None
        idle = [
            (since, connection)
            for connection, holder in self.connections.items()
            if holder == largest and (since := connection.idle_since) is not None
        ]
        return min(idle, key=lambda row: row[0])[1] if idle else None

    async def _serve(
        self, newcomer: socket.socket, ip: str, dialect: Dialect, certificates: Certificates | None
    ) -> None:
        address = find_address(ip)
        connection = Connection(dialect, self._context, ip, address, encrypted=certificates is not None)
        protocol: asyncio.BufferedProtocol = connection
        try:
            newcomer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            newcomer.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            self.connections[connection] = address
            self._quota.add(address)
            self._empty.clear()
            log.debug("a connection of %s, %d are open", ip, len(self.connections))
            if certificates is not None:
                protocol = TlsTransport(connection, certificates, self._context)
            await self._connect_socket(protocol, newcomer)
            if not connection.greeted and connection in self.connections:
                self._quota.watch(connection, address)
        except BaseException as error:
            newcomer.close()
            self._forget(connection)
            if not isinstance(error, OSError):
                raise
            self._log.warn("accept", f"cannot serve a connection of {ip}: {error}")

    async def _connect_socket(self, protocol: asyncio.BufferedProtocol, newcomer: socket.socket) -> None:
        """Have the loop serve a socket. Raises `OSError`.

        Where `drain` cancels meanwhile, the next wait ends instead of this one: the connection may have requests under
        way already, and uvloop would close its socket without a word to it.
        """
        connecting = self._loop.create_task(self._loop.connect_accepted_socket(lambda: protocol, newcomer))
        try:
            await asyncio.shield(connecting)
        except asyncio.CancelledError:
            await connecting
            if (accepting := asyncio.current_task()) is not None:
                accepting.cancel()

    def _greet(self, connection: Connection) -> None:
        self._quota.greet(connection, self.connections[connection])

    def _forget(self, connection: Connection) -> None:
        address = self.connections.pop(connection, None)
        if address is None:
            return
        self._quota.remove(connection, address)
        log.debug("a connection of %s ended, %d are open", connection.peer, len(self.connections))
        if not self.connections:
            self._empty.set()

    def _relieve(self) -> None:
        """Memory is short: soon free some of it, again and again until there is enough."""
        if not self._relieving:
            self._relieving = True
            self._loop.call_soon(self._find_relief)

    def _find_relief(self) -> None:
        if not self.pool.short:
            self._relieving = False
            return
        for connection in list(self.connections):
            connection.release_memory()
        now = self._loop.time()
        slow = [connection for connection in self.connections if connection.is_slow(now)]
        for connection in sorted(slow, key=lambda one: one.account.held, reverse=True):
            if self.pool.short:
                connection.shed()
        self._loop.call_later(RELIEF, self._find_relief)

    def _sweep(self) -> None:
        self._timer = self._loop.call_later(self._every, self._sweep)  # first: it goes on if a check fails
        now = self._loop.time()
        for connection in list(self.connections):
            connection.check(now)
