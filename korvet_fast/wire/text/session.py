"""A connection's state, and how a line becomes its answer: envelope, command, arguments, handler, costs."""

from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from korvet_fast.core.broker import Broker
from korvet_fast.core.client_session import Client, ClientSession
from korvet_fast.core.fair_executor import FairExecutor
from korvet_fast.core.fair_queue import FairQueue
from korvet_fast.core.quotas.entity import QuotaKey
from korvet_fast.core.replication.handshake import Handshake
from korvet_fast.errors import KorvetError
from korvet_fast.wire.dialect import CloseConnection, Reply
from korvet_fast.wire.text.arguments import Arguments, BadArguments, Usage
from korvet_fast.wire.text.blocks import Blocks
from korvet_fast.wire.text.errors import BAD_REQUEST, UNAUTHORIZED, UNKNOWN_COMMAND, translate
from korvet_fast.wire.text.order import CommandOrder
from korvet_fast.wire.text.read_ahead import ReadAhead

VERSION: Final = "V1"
_FIELDS: Final = 4
_PATIENCE: Final = 3  # unknown commands in a row, after which this is nobody who speaks the protocol
_QUICK: Final = 1000  # microseconds of work that nobody has to wait for
_LINE: Final = 160  # bytes of memory that a line of a run takes beside its own

# A handler's result: the payload in parts, none for a bare OK.
Payload: TypeAlias = Reply
Handler: TypeAlias = "Callable[[Session, Arguments], Coroutine[Any, Any, Payload]]"


class RequestError(Exception):
    """A command is answered with an error of the protocol."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(code, message)
        self.code = code
        self.message = message


@dataclass(frozen=True)
class Command:
    """One command. `micros`: of the loop that its work may take, told before it starts; None where that is little.

    `reads`: what it gives counts to the client's quota of bytes read.
    """

    usage: Usage
    handler: "Handler"
    micros: "Callable[[Session, Arguments], int] | None" = None
    reads: bool = False


RunHandler: TypeAlias = "Callable[[Session, bytearray], Coroutine[Any, Any, Reply]]"


@dataclass(frozen=True)
class Service:
    """The context that all connections of one listener share.

    `produce` answers runs of PRODUCE lines. `turns`: by topic, where the next record without a key goes. `blocks`: what
    CONSUME wrote last; `read_ahead`: what it read and did not need.
    """

    broker: Broker
    commands: Mapping[str, Command]
    produce: RunHandler
    workers: FairExecutor
    value_limit: int  # bytes of a value that a CONSUME gives
    listener: int = 0  # its number
    turns: dict[str, int] = field(default_factory=dict)
    blocks: Blocks = field(default_factory=Blocks)
    read_ahead: ReadAhead = field(default_factory=ReadAhead)
    queue: FairQueue = field(default_factory=FairQueue)  # the queue of sessions without a connection


class Session(ClientSession):
    """One client's connection, as the text protocol sees it. `order`: of its commands; `peer`: who it is.

    `handshake`: of who says to be another broker.
    """

    __slots__ = ("_over", "_unknown", "handshake", "order", "service")

    def __init__(self, service: Service, peer: str, client: Client | None = None) -> None:
        super().__init__(service.broker, service.workers, client, service.queue)
        self.service = service
        self.peer = peer
        self.listener = service.listener
        self.order = CommandOrder()
        self.handshake: Handshake | None = None
        self._unknown = 0  # unknown commands in a row
        self._over = False

    def handle(self, frame: bytearray) -> Coroutine[Any, Any, Reply]:
        """Answer one line, or a run of PRODUCE lines. The coroutine raises `CloseConnection`, with a last answer."""
        if not self._over and not frame.endswith(b"\n"):
            return self._answer(frame)  # nearly every line: a coroutine less to wait for
        return self._handle(frame)

    async def _handle(self, frame: bytearray) -> Reply:
        """Answer a run, or a line that is too long; nothing more once the connection is to end."""
        if self._over:
            return []
        self._unknown = 0
        if len(frame) > 1:
            self.charge(QuotaKey.PRODUCE, len(frame))
            return await self.service.produce(self, frame)
        raise self._close("a line too long", refuse("0", BAD_REQUEST, "line too long"))

    async def _answer(self, frame: bytearray) -> Reply:
        identity = "0"
        try:
            identity, name, arguments = _open(frame)
            command = self.service.commands.get(name)
            if command is None:
                self._unknown += 1
                if self._unknown == _PATIENCE:
                    raise self._close(f"{_PATIENCE} unknown commands", refuse(identity, *_UNKNOWN))
                return [refuse(identity, *_UNKNOWN)]
            self._unknown = 0
            read = command.usage.read(arguments)
            turn = self.order.begin(alone=True)
            if turn is not None:
                await turn
            try:
                if command.micros is not None and (micros := command.micros(self, read)) > _QUICK:
                    self._turns.use(micros / 1_000_000)
                    await self._turns.wait()
                payload = await command.handler(self, read)
            finally:
                self.order.end(alone=True)
        except BadArguments as error:
            return [refuse(identity, BAD_REQUEST, str(error))]
        except RequestError as error:
            return [refuse(identity, error.code, error.message)]
        except KorvetError as error:
            return [refuse(identity, *translate(error.error))]
        if not payload:
            return [f"{VERSION}|{identity}|OK\n".encode()]
        if command.reads:
            self.charge(QuotaKey.FETCH, sum(map(len, payload)))
        return [f"{VERSION}|{identity}|OK|".encode(), *payload, b"\n"]

    def cost(self, frame: bytearray) -> int:
        """A run's lines are read into places, made into batches, and answered."""
        return 3 * len(frame) + _LINE * frame.count(b"\n")

    def disconnect(self, why: str) -> Exception:
        """What ends the connection of who is no peer. `why`: for the log."""
        return self._close(why, refuse("0", UNAUTHORIZED, "this is for the broker's peers"))

    def _close(self, why: str, answer: bytes) -> CloseConnection:
        """The close that ends the connection, with a last answer. `why`: for the log."""
        self._over = True
        return CloseConnection(why, [answer])


_UNKNOWN: Final = (UNKNOWN_COMMAND, "there is no such command")


def refuse(identity: str, code: str, message: str) -> bytes:
    """The answer to a request that failed."""
    return f"{VERSION}|{identity}|ERR|{code}|{message}\n".encode()


def _open(frame: bytearray) -> tuple[str, str, str]:
    """Correlation id, command and arguments. Raises `BadArguments`."""
    try:
        line = frame.decode()
    except UnicodeDecodeError:
        raise BadArguments("a line is UTF-8") from None
    if "\0" in line or "\r" in line:
        raise BadArguments("a line holds no NUL, and no CR but at its end")
    fields = line.split("|", _FIELDS - 1)
    if len(fields) < _FIELDS:
        raise BadArguments("a line is V1|id|COMMAND|arguments; the last bar stands even without arguments")
    version, identity, name, arguments = fields
    if version != VERSION:
        raise BadArguments("the version is V1")
    if not identity or not name:
        raise BadArguments("the correlation id and the command may not be empty")
    return identity, name, arguments
