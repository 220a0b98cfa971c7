"""redis-py clients for slow commands: those to Sentinels and to nodes of a Cluster, INFO, CONFIG GET."""

import asyncio
from typing import Any

from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.credentials import CredentialProvider
from redis.exceptions import NoPermissionError, RedisError, ResponseError

from korvet_fast.errors import StoreError
from korvet_fast.store.redis.connection.connect import NAME
from korvet_fast.store.redis.connection.url import RedisAddress, RedisUrl


class CommandError(StoreError):
    """The server answered with an error."""


class NoPermission(CommandError):
    """Our user lacks a right."""


class _Credentials(CredentialProvider):
    """User and password, read for each connection: the password's file may have changed."""

    def __init__(self, url: RedisUrl, sentinel: bool) -> None:
        self._url = url
        self._sentinel = sentinel

    def get_credentials(self) -> tuple[str] | tuple[str, str]:
        user, password = _known(self._url, self._sentinel)
        if not self._sentinel:
            password, _ = self._url.read_password()
        return (user, password) if user else (password,)

    async def get_credentials_async(self) -> tuple[str] | tuple[str, str]:
        return self.get_credentials()


class Clients:
    """A client for each server asked so far."""

    def __init__(self, url: RedisUrl) -> None:
        self._url = url
        self._clients: dict[tuple[RedisAddress, bool], Redis] = {}

    async def call(self, endpoint: RedisAddress, *command: bytes | str | int, sentinel: bool = False) -> Any:
        """One command; the reply as RESP2 has it: bytes, int, list or None.

        Raises `CommandError` for an error reply, `StoreError` for a server that cannot be reached or does not answer.
        """
        client = self._clients.get((endpoint, sentinel))
        if client is None:
            client = self._clients[endpoint, sentinel] = _make(self._url, endpoint, sentinel)
        # redis-py keeps its time by the current task, and our handlers have none.
        return await asyncio.ensure_future(_call(client, endpoint, command))

    async def close(self) -> None:
        """Close all connections."""
        clients, self._clients = self._clients, {}
        for client in clients.values():
            await client.aclose()


async def _call(client: Redis, endpoint: RedisAddress, command: tuple[bytes | str | int, ...]) -> Any:
    try:
        return await client.execute_command(*command)  # type: ignore[no-untyped-call]
    except ResponseError as error:
        kind = NoPermission if isinstance(error, NoPermissionError) else CommandError
        raise kind(f"{endpoint} refuses {command[0]!s}: {error}") from error
    except (RedisError, OSError) as error:
        raise StoreError(f"{endpoint}: {error}") from error
    except RuntimeError as error:
        # uvloop raises this for a lost connection. redis-py does not expect it, and would use the connection again.
        await client.connection_pool.disconnect()
        raise StoreError(f"{endpoint}: {error}") from error


def _known(url: RedisUrl, sentinel: bool) -> tuple[str, str]:
    """User and password, as they were at the start."""
    return (url.sentinel_user, url.sentinel_password) if sentinel else (url.user, url.password)


def _make(url: RedisUrl, endpoint: RedisAddress, sentinel: bool) -> Redis:
    where: dict[str, Any] = {"unix_socket_path": endpoint.path}
    if not endpoint.path:
        where = {"host": endpoint.host, "port": endpoint.port, "socket_keepalive": True}
    if url.tls is not None:
        where |= {
            "ssl": True,
            "ssl_ca_certs": url.tls.ca or None,
            "ssl_certfile": url.tls.certificate or None,
            "ssl_keyfile": url.tls.key or None,
            "ssl_password": url.tls.key_password or None,
            "ssl_cert_reqs": "required" if url.tls.verify else "none",
            "ssl_check_hostname": url.tls.check_hostname,
        }
    client = Redis(
        **where,
        db=0 if sentinel else url.db,
        credential_provider=_Credentials(url, sentinel) if any(_known(url, sentinel)) else None,
        client_name=NAME,
        driver_info=None,  # CLIENT SETINFO is unknown to Redis 7.0
        protocol=2,
        socket_timeout=url.timeout,
        socket_connect_timeout=url.timeout,
        retry=Retry(NoBackoff(), 0),  # a command whose outcome is unknown must not be sent again
    )
    client.response_callbacks.clear()  # replies as they are
    return client
