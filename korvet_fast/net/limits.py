"""Limits of one connection, and of all connections of a server. Times are in seconds."""

from typing import Final, NamedTuple

from korvet_fast.config import Settings
from korvet_fast.errors import RAISE_FILE_LIMIT

FILES_BESIDE = 48  # descriptors for the interpreter, the store's threads and listeners, beside a quarter of all


class Limits(NamedTuple):
    """Limits of one connection."""

    requests: int = 64  # requests under way at once
    request_bytes: int = 64 * 1024 * 1024  # cost of all requests under way; one larger request is allowed alone
    idle: float = 600.0  # connections.max.idle.ms: no byte from the peer and no work for it
    frame: float = 30.0  # from the first byte of a request to its last; `rate` adds time for a large one
    rate: int = 16 * 1024  # bytes a second that a peer has to send or to take at least
    stalled: float = 30.0  # replies wait and the peer takes no byte of them
    slow: float = 2.0  # a peer may be slower than `rate` for so long while memory is short


class ServerLimits(NamedTuple):
    """Limits of all connections together. Above `rate`, newcomers wait (`ConnectionRate`)."""

    connections: int = 10_000  # max.connections
    per_ip: int = 10_000  # max.connections.per.ip
    rate: int = 1_000  # connections a second: max.connection.creation.rate (KIP-612)
    pool: int = 128 * 1024 * 1024  # bytes: queued.max.request.bytes
    why_fewer: str = ""  # why `connections` is below max.connections, and what to do


# Of the listeners of operators. One request at a time on a connection: a scrape takes memory, and turns of the loop.
OPERATORS: Final = ServerLimits(connections=64, per_ip=16, rate=100, pool=32 * 1024 * 1024)
OPERATORS_CONNECTION: Final = Limits(requests=1, idle=75.0, frame=10.0)


def read_limits(settings: Settings) -> tuple[ServerLimits, Limits]:
    """Read both kinds of limits from the settings."""
    server_limits = ServerLimits(
        connections=settings.number("max.connections"),
        per_ip=settings.number("max.connections.per.ip"),
        rate=settings.number("max.connection.creation.rate"),
        pool=settings.number("queued.max.request.bytes"),
    )
    return server_limits, Limits(idle=settings.number("connections.max.idle.ms") / 1000)


def leave_room(server_limits: ServerLimits, descriptors: int) -> ServerLimits:
    """Lower `connections` where the process has few descriptors: a flood of them must not take the files of the store.

    An append without a descriptor is refused, and a flush without one fails its log until the next start.
    """
    wanted, room = (
        server_limits.connections,
        max(1, _count_spare(descriptors) - limit_operators(descriptors).connections),
    )
    if room >= wanted:
        return server_limits
    why = (
        f"this process may open too few files for max.connections={wanted}: {descriptors} leave room for {room}; "
        f"{RAISE_FILE_LIMIT} to {count_needed_files(wanted)}"
    )
    return server_limits._replace(connections=room, why_fewer=why)


def limit_operators(descriptors: int) -> ServerLimits:
    """`OPERATORS`, with a quarter of the connections that there is room for where that is less."""
    room = max(1, _count_spare(descriptors) // 4)
    if room >= OPERATORS.connections:
        return OPERATORS
    why = f"this process may open too few files: {descriptors} leave room for {room} of operators; {RAISE_FILE_LIMIT}"
    return OPERATORS._replace(connections=room, why_fewer=why)


def _count_spare(descriptors: int) -> int:
    """How many descriptors are not kept for the store: below 0 where that has too few already."""
    return descriptors - descriptors // 4 - FILES_BESIDE


def count_needed_files(connections: int) -> int:
    """So many descriptors that `leave_room` leaves this number of connections as it is."""
    return (connections + OPERATORS.connections + FILES_BESIDE - 1) * 4 // 3 + 1
