"""Making a pipeline: the socket, TLS, user and password, database."""

import asyncio
import ssl
from functools import partial

from korvet_fast._native import encode_commands
from korvet_fast.errors import SettingError
from korvet_fast.store.redis.connection.pipeline import Pipeline, PipelineDown, PipelineLost
from korvet_fast.store.redis.connection.url import RedisAddress, RedisUrl, Tls
from korvet_fast.store.types import Spent

NAME = "korvet-fast"  # the name that CLIENT LIST shows


def make_context(tls: Tls) -> ssl.SSLContext:
    """The SSL context that checks TLS connections. Raises `SettingError` for files that cannot be used."""
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
    url: RedisUrl,
    endpoint: RedisAddress,
    context: ssl.SSLContext | None,
    patience: float = 0.0,
    round_trips: Spent | None = None,
) -> Pipeline:
    """A pipeline to a server, ready for commands.

    `patience`: seconds that an answer may take beyond the URL's `socket_timeout`, for commands that block. Raises
    `PipelineDown` if the server cannot be reached, does not answer in time or refuses us. `round_trips`: of `Pipeline`.
    """
    # asyncio keeps time by the current task, and our handlers have none.
    return await asyncio.ensure_future(_connect(url, endpoint, context, patience, round_trips))


async def _connect(
    url: RedisUrl,
    endpoint: RedisAddress,
    context: ssl.SSLContext | None,
    patience: float,
    round_trips: Spent | None,
) -> Pipeline:
    loop = asyncio.get_running_loop()
    make = partial(Pipeline, str(endpoint), url.timeout + patience, round_trips)
    try:
        async with asyncio.timeout(url.timeout):
            if endpoint.path:
                _, pipeline = await loop.create_unix_connection(make, endpoint.path)
            else:
                _, pipeline = await loop.create_connection(make, endpoint.host, endpoint.port, ssl=context)
    except TimeoutError:
        hint = " (does it speak TLS there?)" if context else ""
        raise PipelineDown(f"{endpoint} did not take the connection within {url.timeout:g} s{hint}") from None
    except ssl.SSLError as error:
        raise PipelineDown(f"{endpoint}: no TLS connection: {error.reason or error}") from None
    except OSError as error:
        hint = " (is it running there?)" if isinstance(error, ConnectionRefusedError | FileNotFoundError) else ""
        raise PipelineDown(f"cannot connect to Redis at {endpoint}: {error.strerror or error}{hint}") from None
    password, unread = url.read_password()
    commands = _introduce(url, password)
    try:
        replies = await pipeline.send(encode_commands(commands), len(commands))
    except asyncio.CancelledError:
        pipeline.close("nobody waits for it any more")
        raise
    except PipelineLost as error:
        # A server that wants TLS hangs up; one that stands still is silent.
        plain = not (context or endpoint.path or pipeline.expired)
        hint = " (if it wants TLS, write rediss:// or rediss+...)" if plain else ""
        raise PipelineDown(error.detail + hint) from None
    for command, reply in zip(commands, replies, strict=True):
        if bytes(reply[:1]) == b"-":
            error_reply = bytes(reply[1:]).decode(errors="replace").strip().removesuffix(".")
            pipeline.close(error_reply)
            advice = _advise(error_reply, url, unread)
            raise PipelineDown(f"Redis at {endpoint} refuses {command[0]!s}: {error_reply}{advice}")
    return pipeline


def _advise(error_reply: str, url: RedisUrl, unread: str) -> str:
    if not error_reply.startswith(("NOAUTH", "WRONGPASS")):
        return ""
    if unread:
        return f" ({unread}; the password from before was sent)"
    if url.password_file:
        return f" (put the user's password into {url.password_file}: it is read again for each connection)"
    return " (name a user and the file of the password: redis://USER@HOST?password_file=FILE)"


def _introduce(url: RedisUrl, password: str) -> list[list[str | int]]:
    commands: list[list[str | int]] = []
    if password:
        commands.append(["AUTH", url.user, password] if url.user else ["AUTH", password])
    if url.db:
        commands.append(["SELECT", url.db])
    commands.append(["CLIENT", "SETNAME", NAME])
    # An empty transaction. Where MULTI is refused, what follows is carried out all the same, each command by itself.
    commands += [["MULTI"], ["EXEC"]]
    return commands
