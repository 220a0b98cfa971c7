"""PING: `pong`."""

from korvet_fast.wire.text.arguments import Arguments
from korvet_fast.wire.text.session import Payload, Session


async def ping(session: Session, arguments: Arguments) -> Payload:
    return [b"pong"]
