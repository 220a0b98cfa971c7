"""Making a lane: the socket, TLS, who we are, which database."""

import asyncio
import ssl
from collections.abc import Sequence
from functools import partial

from korvet_fast._native import pack
from korvet_fast.errors import SettingError
from korvet_fast.store.redis.lane import Lane, LaneDown, LaneLost
from korvet_fast.store.redis.url import Endpoint, RedisUrl, Tls

NAME = "korvet-fast"  # what CLIENT LIST shows
KEEPALIVE = 60  # seconds of silence after which TCP looks whether the peer is still there


def make_context(tls: Tls) -> ssl.SSLContext:
    """What TLS connections are checked against. Raises `SettingError` for files that cannot be used."""
    what = tls.ca
    try:
        context = ssl.create_default_context(cafile=tls.ca or None)
        if tls.certificate:
            what = f"{tls.certificate} with its key"
            context.load_cert_chain(tls.certificate, tls.key or None, tls.key_password)
    except (OSError, ssl.SSLError) as error:
        raise SettingError(f"{what} cannot be used: {error.strerror or error}") from None
    context.check_hostname = tls.check_hostname
    if not tls.verify:
        context.verify_mode = ssl.CERT_NONE
    return context


async def connect(
    url: RedisUrl, endpoint: Endpoint, context: ssl.SSLContext | None, first: Sequence[Sequence[bytes | str | int]] = ()
) -> Lane:
    """A lane to a server, ready for commands; `first` are sent before any other (`SCRIPT LOAD`).

    Raises `LaneDown` if the server cannot be reached, does not answer in time or refuses us.
    """
    loop = asyncio.get_running_loop()
    make = partial(Lane, str(endpoint), url.timeout)
    try:
        async with asyncio.timeout(url.timeout):
            if endpoint.path:
                _, lane = await loop.create_unix_connection(make, endpoint.path)
            else:
                # TLS with a server that does not answer would wait for a minute; the timeout around it is ours.
                _, lane = await loop.create_connection(make, endpoint.host, endpoint.port, ssl=context)
    except TimeoutError:
        raise LaneDown(f"{endpoint} did not take the connection within {url.timeout:g} s") from None
    except ssl.SSLError as error:
        raise LaneDown(f"{endpoint}: no TLS connection: {error.reason or error}") from None
    except OSError as error:
        raise LaneDown(f"cannot connect to {endpoint}: {error.strerror or error}") from None
    commands = [*_introduce(url), *first]
    try:
        replies = await lane.send(pack(commands), len(commands))
    except LaneLost as error:
        raise LaneDown(error.detail) from None
    for command, reply in zip(commands, replies, strict=True):
        if bytes(reply[:1]) == b"-":
            refusal = bytes(reply[1:]).decode(errors="replace").strip()
            lane.close(refusal)
            raise LaneDown(f"{endpoint} refuses {command[0]!s}: {refusal}")
    return lane


def _introduce(url: RedisUrl) -> list[Sequence[bytes | str | int]]:
    commands: list[Sequence[bytes | str | int]] = []
    if url.password:
        commands.append(["AUTH", url.user, url.password] if url.user else ["AUTH", url.password])
    if url.db:
        commands.append(["SELECT", url.db])
    commands.append(["CLIENT", "SETNAME", NAME])
    return commands
