"""The part that drivers in Python share: commands and answers are JSON lines (README.md beside this file)."""

import base64
import json
import signal
import sys
import time
from collections.abc import Callable
from typing import Any, NamedTuple

PATIENCE = 90.0  # seconds for one command


class Unsupported(Exception):
    """The client has no such feature at all."""


class CommandFailed(Exception):
    """A command that failed: Kafka's name of the error, or the client's words."""


class Options(NamedTuple):
    """The options of a member. `session`: ms. `instance`: its group.instance.id, "" if it is no static member."""

    bootstrap: str
    topic: str
    group: str
    session: int = 6000
    instance: str = ""
    strategy: str = "range"
    protocol: str = "classic"


class Running:
    """True until SIGTERM."""

    def __init__(self) -> None:
        self._stopped = False
        signal.signal(signal.SIGTERM, self._stop)

    def _stop(self, *_: object) -> None:
        self._stopped = True

    def __bool__(self) -> bool:
        return not self._stopped


def tell(**what: Any) -> None:
    """One line, at once, with its time: monotonic, in seconds, the same for all processes of a machine."""
    print(json.dumps(what | {"at": time.monotonic()}), flush=True)


def pack(data: bytes | None) -> str | None:
    return None if data is None else base64.b64encode(data).decode()


def unpack(text: str | None) -> bytes | None:
    return None if text is None else base64.b64decode(text)


def pack_headers(headers: Any) -> list[list[str | None]]:
    return [[name, pack(value)] for name, value in headers]


def unpack_headers(headers: list[tuple[str, str | None]]) -> list[tuple[str, bytes | None]]:
    return [(name, unpack(value)) for name, value in headers]


def _commands_of(client: object) -> dict[str, Callable[..., dict[str, Any]]]:
    """A client's public methods are its commands."""
    methods = ((name, getattr(client, name)) for name in vars(type(client)) if not name.startswith("_"))
    return {name: method for name, method in methods if callable(method)}


def drive(
    open_client: Callable[[str], object],
    member: Callable[[Options], None],
    describe_error: Callable[[Exception], str],
) -> None:
    """The driver's main: `serve BOOTSTRAP` or `member JSON`.

    `open_client` gives an object whose public methods are the commands; `describe_error` what an exception is called.
    """
    mode, argument = sys.argv[1:]
    if mode == "member":
        try:
            member(Options(**json.loads(argument)))
        except Unsupported as reason:
            print(reason, file=sys.stderr)
            sys.exit(3)
        return
    commands = _commands_of(open_client(argument))
    for line in sys.stdin:
        asked = json.loads(line)
        name = asked.pop("do")
        try:
            if name not in commands:
                raise Unsupported(name)
            tell(ok=commands[name](**asked))
        except Unsupported:
            tell(error="unsupported")
        except Exception as error:  # noqa: BLE001 - whatever the client raises is its answer
            print(repr(error), file=sys.stderr, flush=True)
            tell(error=str(error) if isinstance(error, CommandFailed) else describe_error(error))
