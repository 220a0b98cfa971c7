"""The life of a broker process: bind, open the store, say that it is ready, serve, drain, close."""

import asyncio
import logging
import os
import resource
import signal
import sys
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from contextlib import asynccontextmanager
from typing import Any, Protocol

from korvet_fast.core.authentication.oauthbearer import OAUTHBEARER
from korvet_fast.core.broker import Broker
from korvet_fast.core.fair_executor import FairExecutor
from korvet_fast.core.network_use import NetworkUse
from korvet_fast.endpoint import Endpoint
from korvet_fast.errors import SettingError
from korvet_fast.net.busy_poll import BusyPoll
from korvet_fast.net.certificates import Certificates, find_files
from korvet_fast.net.limits import OPERATORS_CONNECTION, Limits, ServerLimits, leave_room, limit_operators, read_limits
from korvet_fast.net.listeners import BoundListeners, Listener
from korvet_fast.net.memory import Memory
from korvet_fast.net.server import Server
from korvet_fast.prestarted_executor import PrestartedExecutor
from korvet_fast.wire.dialects import DIALECTS, OF_CLIENTS, OF_OPERATORS, OF_PEERS, TLS

log = logging.getLogger(__name__)

GRACE = 20.0  # seconds that requests under way have when the broker is told to stop
GRACE_BESIDE = 1.0  # the same for other brokers, whose fetches wait no longer, and for operators
WORKERS = 2  # threads that check large batches; more would only take turns with the loop
HELPERS = 4  # threads for what is done beside the loop now and then: giving memory back, starting, closing


class Registration(Protocol):
    """Tells clients that look elsewhere where this broker is, as long as it serves.

    `open` is called when all addresses are listened on and the broker is open; connections are accepted after it. It
    gets what clients are told to connect to, in the order of the listeners. `close` is called when the broker stops,
    before its connections end.
    """

    async def open(self, advertised: Sequence[Endpoint]) -> None: ...

    async def close(self) -> None: ...


async def serve(
    broker: Broker,
    listeners: Sequence[Listener],
    ready: Callable[[list[Endpoint]], None],
    registration: Registration | None = None,
    stop: asyncio.Event | None = None,
) -> None:
    """Be the broker's process: `serve_until` SIGTERM or SIGINT. A second signal ends the process at once with code 1.

    `stop`: in place of the signals.

    The process is the broker's own: its signals, its garbage collection and the loop's threads are changed. Raises as
    `serve_until`.
    """
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(_report)
    stop = stop or _catch_signals(loop)
    memory = Memory()

    def begin(endpoints: list[Endpoint]) -> None:
        memory.start()
        ready(endpoints)

    with PrestartedExecutor(HELPERS, "help") as helpers:  # they end here: asyncio needs one more thread to end threads
        loop.set_default_executor(helpers)
        try:
            await serve_until(stop, broker, listeners, begin, registration)
        finally:
            memory.stop()


async def serve_until(
    stop: asyncio.Event,
    broker: Broker,
    listeners: Sequence[Listener],
    ready: Callable[[list[Endpoint]], None],
    registration: Registration | None = None,
) -> None:
    """Serve until `stop`, then hand over to other brokers, stop accepting, finish the requests under way, close.

    `ready` gets the endpoints listened on, in the order of `listeners`. Any loop on any thread will do. Raises
    `StoreError` if the store cannot be opened or closed, `SettingError` if another broker has the same `node.id` or the
    certificates of a listener with TLS, or the settings of OAUTHBEARER, cannot be used, `TooFewThreads`, `OSError`
    (with `filename` set to the address) if an address cannot be listened on.
    """
    encrypted = any(listener.endpoint.scheme.endswith(TLS) for listener in listeners)
    certificates = Certificates(find_files(broker.settings)) if encrypted else None
    with BoundListeners(listeners) as bound:
        broker.listeners = bound.endpoints
        async with (
            _watch_certificates(broker, certificates),
            _judge_tokens(broker),
            _serve_operators(broker, bound, certificates),
            _serve_peers(broker, bound, certificates),
        ):
            if not await _open(broker, bound, stop):
                return
            try:
                with FairExecutor(WORKERS, "check") as workers:
                    await _serve(broker, bound, certificates, workers, ready, stop, registration)
            finally:
                await broker.close()


@asynccontextmanager
async def _watch_certificates(broker: Broker, certificates: Certificates | None) -> AsyncIterator[None]:
    """Have the log and the metrics tell meanwhile when they end, if there are any."""
    if certificates is None:
        yield
        return
    broker.certificate_ends = certificates.ends
    watching = asyncio.ensure_future(certificates.watch())
    try:
        yield
    finally:
        watching.cancel()
        await asyncio.wait([watching])


@asynccontextmanager
async def _judge_tokens(broker: Broker) -> AsyncIterator[None]:
    """Have the broker take tokens of OAUTHBEARER meanwhile, if that is enabled. Raises `SettingError`."""
    if OAUTHBEARER not in broker.settings.text("sasl.enabled.mechanisms").split(","):
        yield
        return
    try:
        from korvet_fast.net.oauth import open_tokens  # PyJWT is an extra
    except ModuleNotFoundError as error:
        if error.name != "jwt":
            raise
        raise SettingError(
            "sasl.enabled.mechanisms has OAUTHBEARER, which needs PyJWT: pip install 'korvet-fast[oauth]'"
        ) from None
    tokens = broker.tokens = open_tokens(broker)
    try:
        yield
    finally:
        await tokens.close()


@asynccontextmanager
async def _serve_peers(broker: Broker, bound: BoundListeners, certificates: Certificates | None) -> AsyncIterator[None]:
    """Answer the brokers that keep copies, if any: while this one opens and closes too, as they wait for each other."""
    wanted, limits = read_limits(broker.settings)
    schemes = OF_PEERS if broker.replication is not None else ()
    async with _serve_beside(broker, bound, schemes, leave_room(wanted, _file_limit()), limits, certificates):
        yield


@asynccontextmanager
async def _serve_operators(
    broker: Broker, bound: BoundListeners, certificates: Certificates | None
) -> AsyncIterator[None]:
    """Answer operators and their probes from the start to the end, beside all limits of clients."""
    server_limits = limit_operators(_file_limit())
    async with _serve_beside(broker, bound, OF_OPERATORS, server_limits, OPERATORS_CONNECTION, certificates):
        yield


@asynccontextmanager
async def _serve_beside(
    broker: Broker,
    bound: BoundListeners,
    schemes: Collection[str],
    server_limits: ServerLimits,
    limits: Limits,
    certificates: Certificates | None,
) -> AsyncIterator[None]:
    """Serve the listeners of these schemes, if there are any, by a server of their own."""
    if all(endpoint.scheme not in schemes for endpoint in bound.endpoints):
        yield
        return
    with FairExecutor(WORKERS, "beside") as workers:
        server = Server(server_limits, limits)
        try:
            _listen(server, broker, bound, workers, schemes, certificates)
            yield
        finally:
            await server.drain(GRACE_BESIDE)


def _listen(
    server: Server,
    broker: Broker,
    bound: BoundListeners,
    workers: FairExecutor,
    schemes: Collection[str],
    certificates: Certificates | None,
) -> None:
    """Accept connections at the listeners of these schemes; inside TLS where the scheme says so."""
    for number, (listening, endpoint) in enumerate(zip(bound.sockets, bound.endpoints, strict=True)):
        if endpoint.scheme in schemes:
            dialect = DIALECTS[endpoint.scheme.removesuffix(TLS)](broker, number, workers)
            server.listen(listening, dialect, certificates if endpoint.scheme.endswith(TLS) else None)


async def _open(broker: Broker, bound: BoundListeners, stop: asyncio.Event) -> bool:
    """Open the broker. Where that waits for others: False if it is told to stop meanwhile. Raises as `Broker.open`."""
    if not broker.cluster.is_shared:
        await broker.open(bound.advertised)
        return True
    opening = asyncio.ensure_future(broker.open(bound.advertised))
    stopping = asyncio.ensure_future(stop.wait())
    try:
        await asyncio.wait([opening, stopping], return_when=asyncio.FIRST_COMPLETED)
    finally:
        stopping.cancel()
        told = not opening.done()
        if told:
            opening.cancel()
            await asyncio.wait([opening])
    if told:
        return False
    opening.result()
    return True


async def _serve(
    broker: Broker,
    bound: BoundListeners,
    certificates: Certificates | None,
    workers: FairExecutor,
    ready: Callable[[list[Endpoint]], None],
    stop: asyncio.Event,
    registration: Registration | None,
) -> None:
    wanted, limits = read_limits(broker.settings)
    server_limits = leave_room(wanted, _file_limit())
    # With several requests of a connection under way to another server, the loop leaves it the processor.
    busy_poll = BusyPoll() if broker.read_store_times().round_trips is None else BusyPoll(most=1)
    server = Server(server_limits, limits, busy_poll)
    if registration is not None:
        await registration.open(bound.advertised)
    _listen(server, broker, bound, workers, OF_CLIENTS, certificates)
    broker.network_use = lambda: NetworkUse(len(server.connections), server.pool.used, server.pool.limit)
    try:
        ready(bound.endpoints)
        if server_limits.why_fewer:
            log.warning("%s", server_limits.why_fewer)
        await stop.wait()
        log.info("stopping: finishing the requests under way")
        await broker.leave()
    finally:
        try:
            if registration is not None:
                await registration.close()
        finally:
            await server.drain(GRACE)


def _catch_signals(loop: asyncio.AbstractEventLoop) -> asyncio.Event:
    stop = asyncio.Event()

    def asked() -> None:
        if stop.is_set():
            log.warning("told a second time to stop: this process ends at once, requests under way are cut off")
            os._exit(1)
        stop.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, asked)
    return stop


def _file_limit() -> int:
    """How many descriptors this process may open."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return soft if soft != resource.RLIM_INFINITY else sys.maxsize


def _report(_: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Log an error that reached nobody, with its traceback: it is a bug of the broker."""
    log.error("%s", context.get("message", "an error in the event loop"), exc_info=context.get("exception"))
