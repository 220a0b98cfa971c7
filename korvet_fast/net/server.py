"""Listeners of a broker, their connections, and who may connect."""

import asyncio
import errno
import logging
import socket
from collections import Counter

from korvet_fast.net.connection import WINDOW, Connection, Shared
from korvet_fast.net.limits import Admission, Limits
from korvet_fast.net.pool import Pool
from korvet_fast.net.quiet import Quiet
from korvet_fast.net.wakefulness import Wakefulness
from korvet_fast.wire.dialect import Dialect

log = logging.getLogger(__name__)

BACKLOG = 1024
OUT_OF_RESOURCES = {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM}


class Turnstile:
    """So many newcomers a second; a second's worth may come at once."""

    def __init__(self, rate: int) -> None:
        self._step = 1.0 / rate
        self._next = 0.0  # when the newcomer after the last one is within the rate

    def enter(self, now: float) -> float:
        """How many seconds the newcomer of time `now` has to wait; negative or zero: none."""
        turn = max(self._next, now - 1.0)
        self._next = turn + self._step
        return turn - now


class Server:
    """All listeners of a broker and their connections. Use on one running loop."""

    def __init__(self, admission: Admission, limits: Limits) -> None:
        self._loop = asyncio.get_running_loop()
        self._admission = admission
        self._limits = limits
        self._quiet = Quiet(self._loop.time)
        self.pool = Pool(admission.pool, self._relieve)
        self._relieving = False
        self._shared = Shared(
            memoryview(bytearray(WINDOW)), self.pool, limits, self._quiet, Wakefulness(), self._forget
        )
        self.connections: dict[Connection, str] = {}  # and the peer's address
        self._of_ip: Counter[str] = Counter()
        self._accepting: dict[asyncio.Task[None], socket.socket] = {}
        self._turnstile = Turnstile(admission.rate)
        self._empty = asyncio.Event()
        self._empty.set()
        self._every = max(0.02, min(limits.idle, limits.frame, limits.stalled, 10.0) / 10)
        self._timer = self._loop.call_later(self._every, self._sweep)

    def listen(self, listener: socket.socket, dialect: Dialect) -> None:
        """Serve `dialect` to whoever connects to `listener` (bound, listening, not blocking); owns it from now on."""
        self._accepting[self._loop.create_task(self._accept(listener, dialect))] = listener

    async def drain(self, grace: float) -> None:
        """Stop accepting, finish what is under way within `grace` seconds, close everything."""
        for task in self._accepting:
            task.cancel()
        await asyncio.gather(*self._accepting, return_exceptions=True)
        for listener in self._accepting.values():
            listener.close()
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

    async def _accept(self, listener: socket.socket, dialect: Dialect) -> None:
        # A loop of our own: it must outlive every error of accept, and decides who may come in.
        while True:
            try:
                newcomer, peer = await self._loop.sock_accept(listener)
            except OSError as error:
                self._quiet.warn("accept", f"cannot accept a connection now: {error}")
                # Most errors concern one newcomer; without file descriptors nobody gets in for a while.
                await asyncio.sleep(0.1 if error.errno in OUT_OF_RESOURCES else 0)
                continue
            ip = str(peer[0])
            if (refusal := self._refusal(ip)) is not None:
                self._quiet.warn("refused", f"refused a connection of {ip}: {refusal}")
                newcomer.close()
                continue
            await self._admit(newcomer, ip, dialect)

    async def _admit(self, newcomer: socket.socket, ip: str, dialect: Dialect) -> None:
        connection = Connection(dialect, self._shared, ip)
        try:
            if (wait := self._turnstile.enter(self._loop.time())) > 0:
                await asyncio.sleep(wait)
            newcomer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.connections[connection] = ip
            self._of_ip[ip] += 1
            self._empty.clear()
            await self._loop.connect_accepted_socket(lambda: connection, newcomer)
        except BaseException as error:
            newcomer.close()
            self._forget(connection)
            if not isinstance(error, OSError):
                raise
            self._quiet.warn("accept", f"cannot serve a connection of {ip}: {error}")

    def _refusal(self, ip: str) -> str | None:
        if len(self.connections) >= self._admission.connections:
            return f"max.connections={self._admission.connections} is reached"
        if self._of_ip[ip] >= self._admission.per_ip:
            return f"max.connections.per.ip={self._admission.per_ip} is reached"
        return None

    def _forget(self, connection: Connection) -> None:
        ip = self.connections.pop(connection, None)
        if ip is None:
            return
        self._of_ip[ip] -= 1
        if not self._of_ip[ip]:
            del self._of_ip[ip]
        if not self.connections:
            self._empty.set()

    def _relieve(self) -> None:
        """Memory is short. Once in a turn of the loop, and not in the middle of somebody's work."""
        if not self._relieving:
            self._relieving = True
            self._loop.call_soon(self._hurry)

    def _hurry(self) -> None:
        self._relieving = False
        now = self._loop.time()
        # All the others with half a request wait for the favoured one. If it is silent they cannot all be waited for,
        # and the honest among them will try again.
        favoured = self.pool.favoured
        shed = isinstance(favoured, Connection) and favoured.is_silent(now)
        for connection in list(self.connections):
            connection.hurry(now, shed=shed)

    def _sweep(self) -> None:
        now = self._loop.time()
        for connection in list(self.connections):
            connection.check(now)
        if self.pool.crowded:
            self._relieve()
        self._timer = self._loop.call_later(self._every, self._sweep)
