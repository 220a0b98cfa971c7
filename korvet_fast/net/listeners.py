"""Listeners: where a broker accepts connections, and the sockets that are bound there."""

import socket
from collections.abc import Sequence
from typing import NamedTuple, Self

from korvet_fast.endpoint import Address, Endpoint

BACKLOG = 1024


class Listener(NamedTuple):
    """Where to listen (port 0: any free one), and what clients are told to connect to (None: the same)."""

    endpoint: Endpoint
    advertised: Endpoint | None = None


class BoundListeners:
    """Bound sockets. A broker binds them first: a taken port is the most frequent error, and the cheapest to find.

    `with` binds all of them; it raises `OSError` with `filename` set to the address that cannot be listened on.
    """

    def __init__(self, listeners: Sequence[Listener]) -> None:
        self.sockets: list[socket.socket] = []
        self._listeners = listeners

    def __enter__(self) -> Self:
        try:
            for listener in self._listeners:
                self.sockets.append(_bind(listener.endpoint.address))
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for listening in self.sockets:
            listening.close()

    @property
    def endpoints(self) -> list[Endpoint]:
        """The endpoints listened on, each with the port that its socket has."""
        ports = [listening.getsockname()[1] for listening in self.sockets]
        return [listener.endpoint._replace(port=port) for listener, port in zip(self._listeners, ports, strict=True)]

    @property
    def advertised(self) -> list[Endpoint]:
        """The endpoints that clients are told to connect to."""
        return [
            listener.advertised or endpoint for listener, endpoint in zip(self._listeners, self.endpoints, strict=True)
        ]


def _bind(address: Address) -> socket.socket:
    listening = None
    try:
        family, kind, protocol, _, place = socket.getaddrinfo(
            address.host, address.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listening = socket.socket(family, kind, protocol)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.setblocking(False)
        listening.bind(place)
        listening.listen(BACKLOG)
    except OSError as error:
        if listening is not None:
            listening.close()
        raise OSError(error.errno, error.strerror, str(address)) from error
    return listening
