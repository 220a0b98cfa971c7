"""A client of the text protocol that sends bytes as they are."""

import socket
import sys
from types import TracebackType
from typing import Self

PATIENCE = 300.0  # seconds that an answer may take on a busy machine

# What goes before the command of a broker whose acks=all waits for long: two seconds are little for a busy disk.
PATIENT = (
    sys.executable,
    "-c",
    "import sys, korvet_fast.__main__ as program, korvet_fast.wire.text.api.produce as produce; "
    f"produce._ALL_MS = {int(PATIENCE * 1000)}; sys.argv[:4] = ['korvet-fast']; program.main()",
)


class TextClient:
    """A connection to a text listener. Answers are given without their line ends."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._answers = self.socket.makefile("rb")

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)

    def answer(self) -> str:
        """The next answer; "" behind the last one."""
        return self._answers.readline().decode().removesuffix("\n")

    def ask(self, line: str) -> str:
        """Send one line; its answer."""
        self.send(line.encode() + b"\n")
        return self.answer()

    def rest(self) -> bytes:
        """All answers that are still to come, until the broker closes the connection."""
        return self._answers.read()

    def ended(self) -> bool:
        """Whether the broker closes the connection without saying any more."""
        try:
            return self._answers.read() == b""
        except ConnectionResetError:  # it closed while bytes were on their way to it
            return True

    def close(self) -> None:
        self._answers.close()
        self.socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()
