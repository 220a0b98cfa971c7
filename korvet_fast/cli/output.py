"""Standard output that its reader may close, or that may be full: a command ends then, and says so where it matters."""

import errno
import io
import os
import sys
from typing import IO, Any

import click


class OutputClosed(click.ClickException):
    """The program that reads our output has closed it: the command has done its part."""

    exit_code = 0

    def __init__(self) -> None:
        super().__init__("standard output is closed")

    def show(self, file: IO[Any] | None = None) -> None:
        """Nothing: `head` has seen enough, and that is no error."""


class _Descriptor(io.FileIO):
    """A file descriptor whose failures are errors of the command line."""

    def write(self, data: Any, /) -> int:
        try:
            return super().write(data)
        except OSError as error:
            # Whatever is still buffered is not wanted any more; Python would try to write it at exit.
            os.dup2(os.open(os.devnull, os.O_WRONLY), self.fileno())
            if error.errno == errno.EPIPE:
                raise OutputClosed from None
            raise click.ClickException(
                f"cannot write to standard output: {os.strerror(error.errno or 0)}; what was printed is not complete"
            ) from None


def guard_streams() -> None:
    """Let what is written to `sys.stdout` raise `click.ClickException` where it cannot be written.

    A stream that was closed with <&- or >&- becomes an empty one: its number must not become a socket's.
    """
    if sys.stdin is None:
        sys.stdin = open(os.devnull, encoding="utf-8")  # noqa: SIM115, PTH123 (open until the end)
    if sys.stdout is None:
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115, PTH123 (open until the end)
        return
    sys.stdout.flush()
    buffer = io.BufferedWriter(_Descriptor(sys.stdout.fileno(), "w", closefd=False))
    line_buffering = sys.stdout.isatty()
    sys.stdout = io.TextIOWrapper(buffer, sys.stdout.encoding, sys.stdout.errors, line_buffering=line_buffering)
