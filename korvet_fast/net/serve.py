"""The life of a broker process: open, listen, say that it is ready, serve, drain, close."""

import asyncio
import logging
import os
import resource
import signal
import socket
import sys
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from korvet_fast.core.broker import Broker
from korvet_fast.core.types import Address
from korvet_fast.net.limits import leave_room, read_limits
from korvet_fast.net.server import BACKLOG, Server
from korvet_fast.wire.kafka.dialect import KafkaDialect

log = logging.getLogger(__name__)

GRACE = 20.0  # seconds that requests under way have when the broker is told to stop


class Door(NamedTuple):
    """Where to listen (port 0: any free one), and what clients are told to connect to (None: the same)."""

    host: str
    port: int
    advertised: Address | None = None


async def serve(broker: Broker, doors: Sequence[Door], ready: Callable[[list[Address]], None]) -> None:
    """Serve until SIGTERM or SIGINT, then hand over to other brokers, stop accepting, finish what is under way, close.

    `ready` gets the addresses listened on, in the order of `doors`. A second signal ends the process at once with
    exit code 1. Raises `StoreError` if the store cannot be opened or closed, `SettingError` if another broker has the
    same `node.id`, `OSError` (with `filename` set to the address) if an address cannot be listened on.
    """
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(_report)
    stop = _catch_signals(loop)
    with _Listeners(doors) as listeners:
        await broker.open(listeners.advertised)
        try:
            await _serve(broker, listeners, ready, stop)
        finally:
            await broker.close()


async def _serve(
    broker: Broker,
    listeners: "_Listeners",
    ready: Callable[[list[Address]], None],
    stop: asyncio.Event,
) -> None:
    wanted, limits = read_limits(broker.settings)
    admission = leave_room(wanted, _raise_file_limit())
    server = Server(admission, limits)
    dialects = []
    for number, listener in enumerate(listeners.sockets):
        dialect = KafkaDialect(broker, number)
        dialects.append(dialect)
        server.listen(listener, dialect)
    try:
        ready(listeners.addresses)
        if admission != wanted:
            text = "this process may open too few files for max.connections=%d: it takes %d; raise `ulimit -Hn`"
            log.warning(text, wanted.connections, admission.connections)
        await stop.wait()
        log.info("stopping: finishing what is under way")
        await broker.leave()
    finally:
        await server.drain(GRACE)
        for dialect in dialects:
            dialect.close()


class _Listeners:
    """Bound sockets; bound first, because a port that is taken is the most frequent error and the cheapest to find."""

    def __init__(self, doors: Sequence[Door]) -> None:
        self.sockets: list[socket.socket] = []
        self._doors = doors

    def __enter__(self) -> "_Listeners":
        try:
            for door in self._doors:
                self.sockets.append(_listen(door))
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for listener in self.sockets:
            listener.close()

    @property
    def addresses(self) -> list[Address]:
        names = [listener.getsockname() for listener in self.sockets]
        return [Address(door.host, name[1]) for door, name in zip(self._doors, names, strict=True)]

    @property
    def advertised(self) -> list[Address]:
        """What clients are told to connect to."""
        return [door.advertised or address for door, address in zip(self._doors, self.addresses, strict=True)]


def _listen(door: Door) -> socket.socket:
    listener = None
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            door.host, door.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listener = socket.socket(family, kind, protocol)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.setblocking(False)
        listener.bind(address)
        listener.listen(BACKLOG)
    except OSError as error:
        if listener is not None:
            listener.close()
        raise OSError(error.errno, error.strerror, f"{door.host}:{door.port}") from error
    return listener


def _catch_signals(loop: asyncio.AbstractEventLoop) -> asyncio.Event:
    stop = asyncio.Event()

    def asked() -> None:
        if stop.is_set():
            os._exit(1)  # asked twice: do not wait for anything
        stop.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, asked)
    return stop


def _raise_file_limit() -> int:
    """Connections and segment files need descriptors: take as many as this process may have, and say how many."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard if hard != resource.RLIM_INFINITY else sys.maxsize


def _report(_: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """What asyncio could not tell anybody: a bug of ours, so it is logged with its traceback."""
    log.error("%s", context.get("message", "an error in the event loop"), exc_info=context.get("exception"))
