"""What the clients' connections hold, as the server tells it."""

from typing import NamedTuple


class NetworkUse(NamedTuple):
    """Open connections, and bytes of queued.max.request.bytes that are taken."""

    connections: int
    memory: int
    memory_limit: int
