"""The parts of a broker's life that a process test does not reach."""

import logging
import socket

import pytest

from korvet_fast.config import read_settings
from korvet_fast.net.limits import Admission, leave_room, read_limits
from korvet_fast.net.serve import Door, _Listeners, _report


def test_an_address_that_cannot_be_listened_on_is_named() -> None:
    taken = socket.create_server(("127.0.0.1", 0))
    port = taken.getsockname()[1]
    with (
        taken,
        pytest.raises(OSError, match="in use") as caught,
        _Listeners([Door("127.0.0.1", 0), Door("127.0.0.1", port)]),
    ):
        pass
    assert caught.value.filename == f"127.0.0.1:{port}"
    with pytest.raises(OSError, match="nowhere") as caught, _Listeners([Door("nowhere.invalid", 1)]):
        pass
    assert caught.value.filename == "nowhere.invalid:1"


def test_listeners_say_which_port_they_got() -> None:
    with _Listeners([Door("127.0.0.1", 0), Door("localhost", 0)]) as listeners:
        hosts = [address.host for address in listeners.addresses]
        assert hosts == ["127.0.0.1", "localhost"]
        for address in listeners.addresses:
            socket.create_connection(address).close()


def test_what_nobody_caught_is_logged_with_its_traceback(caplog: pytest.LogCaptureFixture) -> None:
    try:
        raise ZeroDivisionError("nobody caught this")
    except ZeroDivisionError as error:
        _report(None, {"message": "Exception in callback", "exception": error})  # type: ignore[arg-type]
    assert [record.levelno for record in caplog.records] == [logging.ERROR]
    assert "Exception in callback" in caplog.text
    assert "Traceback" in caplog.text


def test_limits_come_from_the_settings() -> None:
    given = ["max.connections=7", "max.connections.per.ip=6", "max.connection.creation.rate=5"]
    admission, limits = read_limits(
        read_settings([*given, "queued.max.request.bytes=4000", "connections.max.idle.ms=3000"])
    )
    assert admission == Admission(7, 6, 5, 4000)
    assert limits.idle == 3.0


def test_connections_leave_descriptors_to_the_store() -> None:
    assert leave_room(Admission(), 1 << 20) == Admission()
    assert leave_room(Admission(), 1024).connections < 1024
    assert leave_room(Admission(), 10).connections == 1
