"""The text protocol behind one listener."""

import re
from functools import partial
from typing import Final

from korvet_fast._native import Lines
from korvet_fast.core.broker import Broker
from korvet_fast.core.client_session import Client
from korvet_fast.core.fair_executor import FairExecutor
from korvet_fast.wire.dialect import FirstBytes, FirstRequestLimits
from korvet_fast.wire.text.access import guard_commands
from korvet_fast.wire.text.api.produce import produce
from korvet_fast.wire.text.commands import COMMANDS
from korvet_fast.wire.text.errors import BAD_REQUEST
from korvet_fast.wire.text.session import Service, Session, refuse

_RUN: Final = 64 * 1024  # bytes of a run of PRODUCE lines
_LARGEST: Final = 2 << 20  # bytes of a value that fits into an answer, at least


class TextDialect:
    """Serves `broker` to whoever writes lines. `workers`: they unpack what takes long."""

    of_peers = in_zookeeper = False
    farewell = refuse("0", BAD_REQUEST, "this port speaks the text protocol only")
    first_bytes = FirstBytes(re.compile(rb"V1\|"), "the text protocol")
    listener_name = "a listener of the text protocol"

    def __init__(self, broker: Broker, listener: int, workers: FairExecutor) -> None:
        self._limit = broker.settings.number("text.line.max.bytes")
        # `Lines` itself sees to the limit of a line. A person types, and has more time than a program.
        self.first_request = FirstRequestLimits(self._limit + _RUN, 30.0)
        guarded = broker.authorizer is not None
        commands = guard_commands(COMMANDS) if guarded else COMMANDS
        run = partial(produce, guarded=True) if guarded else produce
        self._service = Service(broker, commands, run, workers, max(_LARGEST, 2 * self._limit), listener)

    def frames(self) -> Lines:
        return Lines(self._limit)

    def session(self, peer: str, client: Client | None = None) -> Session:
        return Session(self._service, peer, client)
