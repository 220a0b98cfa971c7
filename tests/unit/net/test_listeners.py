"""Where a broker listens: an address that is taken, a port of the system's choice."""

import socket

import pytest

from korvet_fast.endpoint import Endpoint
from korvet_fast.net.listeners import BoundListeners, Listener


def on(host: str, port: int) -> Listener:
    return Listener(Endpoint("kafka", host, port))


def test_an_address_that_cannot_be_listened_on_is_named() -> None:
    taken = socket.create_server(("127.0.0.1", 0))
    port = taken.getsockname()[1]
    with (
        taken,
        pytest.raises(OSError, match="in use") as caught,
        BoundListeners([on("127.0.0.1", 0), on("127.0.0.1", port)]),
    ):
        pass
    assert caught.value.filename == f"127.0.0.1:{port}"
    with pytest.raises(OSError, match="nowhere") as caught, BoundListeners([on("nowhere.invalid", 1)]):
        pass
    assert caught.value.filename == "nowhere.invalid:1"


def test_listeners_say_which_port_they_got() -> None:
    with BoundListeners([on("127.0.0.1", 0), on("localhost", 0)]) as listeners:
        hosts = [endpoint.host for endpoint in listeners.endpoints]
        assert hosts == ["127.0.0.1", "localhost"]
        for endpoint in listeners.endpoints:
            socket.create_connection(endpoint.address).close()
