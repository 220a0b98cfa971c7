"""HTTP requests to a broker's core, without sockets."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import urlencode

from core_world import run_broker
from korvet_fast.core.fair_executor import FairExecutor
from korvet_fast.core.network_use import NetworkUse
from korvet_fast.core.operator_token import OperatorToken
from korvet_fast.endpoint import Endpoint
from korvet_fast.wire.dialect import CloseConnection
from korvet_fast.wire.http.routes import ROUTES
from korvet_fast.wire.http.session import Service, Session

TOKEN = b"0123456789abcdef"


@asynccontextmanager
async def service(
    directory: Path, token: bytes | None = None, advertised: str = "localhost", flags: Sequence[str] = ()
) -> AsyncIterator[Service]:
    async with run_broker(directory, *flags, addresses=[Endpoint("http", advertised, 9644)]) as world:
        world.broker.network_use = lambda: NetworkUse(0, 0, 1)
        with FairExecutor(1, "test") as workers:
            known = None if token is None else OperatorToken(token)
            yield Service(world.broker, 0, ROUTES, workers, known)


async def ask(given_: Service, head: bytes) -> tuple[int, bytes, bytes, bool]:
    """Status, headers, body, and whether the connection goes on."""
    session = Session(given_)
    try:
        parts, goes_on = await session.handle(bytearray(head)), True
    except CloseConnection as end:
        assert end.reply is not None
        parts, goes_on = end.reply, False
        assert await session.handle(bytearray(b"GET /livez HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n")) == []
    headers, _, body = b"".join(parts).partition(b"\r\n\r\n")
    return int(headers.split()[1]), headers, body, goes_on


def get(path: str, *headers: str, method: str = "GET", host: str = "127.0.0.1:9644") -> bytes:
    return "\r\n".join([f"{method} {path} HTTP/1.1", f"Host: {host}", *headers, "", ""]).encode()


def post(path: str, *headers: str, **fields: str) -> bytes:
    """A form, as a browser posts it."""
    form = urlencode(fields)
    kind = "Content-Type: application/x-www-form-urlencoded"
    return get(path, kind, f"Content-Length: {len(form)}", *headers, method="POST") + form.encode()
