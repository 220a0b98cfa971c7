"""Requests over blocking sockets: what attackers and watchers speak."""

import itertools
import socket
import time
from typing import Any

from kafka_messages import CATALOG

ELEMENTS = 1_000_000
_numbers = itertools.count(1)


def encode(key: int, version: int, **values: Any) -> bytes:
    """A request with its length in front."""
    header = {"api_key": key, "api_version": version, "correlation_id": next(_numbers) & 0x7FFFFFFF, "client_id": "c"}
    payload = CATALOG[key].request.encode(header | values, version)
    return len(payload).to_bytes(4, "big") + payload


class Line:
    """A connection to the broker. Every call raises `OSError` or `EOFError` when the broker ends it or time is up.

    `source`: the address to connect from, so that a broker that is fair among addresses can tell the peers apart.
    `buffer`: size of the receive buffer in bytes, for those who read slowly.
    """

    def __init__(self, port: int, *, source: str = "127.0.0.1", buffer: int = 0, timeout: float = 120.0) -> None:
        self.socket = socket.socket()
        try:
            if buffer:
                self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
            self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.socket.settimeout(timeout)
            self.socket.bind((source, 0))
            self.socket.connect(("127.0.0.1", port))
        except OSError:
            self.socket.close()
            raise

    def send(self, sent: bytes | bytearray) -> None:
        self.socket.sendall(sent)

    def receive(self) -> bytearray:
        """The next answer, without its length."""
        return self._read(int.from_bytes(self._read(4), "big"))

    def _read(self, size: int) -> bytearray:
        data = bytearray(size)
        view = memoryview(data)
        while view:
            count = self.socket.recv_into(view)
            if not count:
                raise EOFError("the broker closed the connection")
            view = view[count:]
        return data

    def ask(self, key: int, version: int, **values: Any) -> dict[str, Any]:
        """One request and its answer, decoded."""
        self.send(encode(key, version, **values))
        return CATALOG[key].response.decode(bytes(self.receive()), version, ELEMENTS)

    def close(self) -> None:
        self.socket.close()

    def __enter__(self) -> "Line":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def sip(lines: list[Line], size: int, pause: float, until: float) -> int:
    """Read at most `size` bytes of each line, again and again with a pause in seconds; returns how many were ended."""
    left = list(lines)
    for line in left:
        line.socket.setblocking(False)
    while left and time.monotonic() < until:
        for line in list(left):
            try:
                alive = bool(line.socket.recv(size))
            except BlockingIOError:
                continue
            except OSError:
                alive = False
            if not alive:
                left.remove(line)
        time.sleep(pause)
    return len(lines) - len(left)
