"""A TCP proxy that makes every client look like one from the future: it begins with a version no broker knows yet."""

import socket
import threading
from typing import Self

API_VERSIONS = 18
FUTURE = 9999
_PREFIX = 4


class FutureProxy:
    """Listens on `port` from the start; passes on once `broker_port` is set. `refused`: requests it has changed."""

    def __init__(self) -> None:
        self.broker_port = 0
        self.refused = 0
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._open: list[socket.socket] = []
        self._threads: list[threading.Thread] = []

    def __enter__(self) -> Self:
        self._run(self._accept)
        return self

    def __exit__(self, *_: object) -> None:
        for each in (self._listener, *self._open):
            _shut(each)
        for thread in self._threads:
            thread.join(10)
        for each in (self._listener, *self._open):
            each.close()

    def _run(self, work: object, *arguments: object) -> None:
        thread = threading.Thread(target=work, args=arguments, daemon=True)  # type: ignore[arg-type]
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return  # shut in the end
            broker = socket.create_connection(("127.0.0.1", self.broker_port))
            self._open += [client, broker]
            self._run(self._pass_requests, client, broker)
            self._run(_pass, broker, client)

    def _pass_requests(self, client: socket.socket, broker: socket.socket) -> None:
        first = b""
        while len(first) < _PREFIX + 4 and (data := client.recv(1 << 16)):
            first += data
        if int.from_bytes(first[_PREFIX : _PREFIX + 2], "big") == API_VERSIONS:
            self.refused += 1
            first = first[: _PREFIX + 2] + FUTURE.to_bytes(2, "big") + first[_PREFIX + 4 :]
        broker.sendall(first)
        _pass(client, broker)


def _pass(source: socket.socket, target: socket.socket) -> None:
    try:
        while data := source.recv(1 << 16):
            target.sendall(data)
    except ConnectionError:
        pass  # one side is gone: so is the other now
    _shut(source)
    _shut(target)


def _shut(each: socket.socket) -> None:
    try:
        each.shutdown(socket.SHUT_RDWR)
    except OSError:
        return  # it was already
