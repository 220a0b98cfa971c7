"""What connections may use, and who may have one. Times in seconds."""

from typing import NamedTuple

from korvet_fast.config import Settings

FILES_BESIDE = 48  # descriptors for the system's own, the threads of the store and the listeners, besides a quarter


class Limits(NamedTuple):
    """What one connection may use."""

    requests: int = 64  # under way at once
    request_bytes: int = 64 * 1024 * 1024  # weight of requests under way; one larger request alone is allowed
    idle: float = 600.0  # connections.max.idle.ms: without a byte from the peer and without work for it
    frame: float = 30.0  # from the first byte of a request to its last
    stalled: float = 30.0  # replies wait, and the peer takes none of them
    hurried: float = 2.0  # the same, while memory is short


class Admission(NamedTuple):
    """Who may connect. The rate is in connections a second; newcomers above it wait in the system's queue."""

    connections: int = 10_000  # max.connections
    per_ip: int = 10_000  # max.connections.per.ip
    rate: int = 1_000  # max.connection.creation.rate (KIP-612)
    pool: int = 128 * 1024 * 1024  # queued.max.request.bytes


def read_limits(settings: Settings) -> tuple[Admission, Limits]:
    """What the settings say about connections."""
    admission = Admission(
        connections=settings.number("max.connections"),
        per_ip=settings.number("max.connections.per.ip"),
        rate=settings.number("max.connection.creation.rate"),
        pool=settings.number("queued.max.request.bytes"),
    )
    return admission, Limits(idle=settings.number("connections.max.idle.ms") / 1000)


def leave_room(admission: Admission, descriptors: int) -> Admission:
    """Fewer connections where the process has few descriptors: a flood of them must not keep the store from its files.

    An append without a descriptor is refused, and a flush without one fails its log until the next start.
    """
    room = max(1, descriptors - descriptors // 4 - FILES_BESIDE)
    return admission._replace(connections=min(admission.connections, room))
