"""Where a broker inside a program keeps its records, and what becomes of them at its end."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from uuid import uuid4

from korvet_fast.errors import SettingError
from korvet_fast.store.redis.connection.url import RedisUrl, parse_url

_FILES = "file:"
_DEFAULT_NAMESPACE = RedisUrl.__dataclass_fields__["namespace"].default
_AT_ONCE = 1000  # keys that a SCAN looks at


@asynccontextmanager
async def find_place(store: str | None) -> AsyncIterator[Path | RedisUrl]:
    """Give the directory or the Redis that `store` names; a place made for this broker alone is deleted at the end.

    Raises `SettingError` for a text that names no store, `StoreError` if keys cannot be deleted.
    """
    if store is None:
        with TemporaryDirectory(prefix="korvet-") as directory:
            yield Path(directory)
    elif store.startswith(_FILES) and store != _FILES:
        yield Path(store.removeprefix(_FILES))
    elif "://" not in store:
        raise SettingError(f"{store!r} is no store: write file:DIRECTORY or redis://HOST:PORT")
    else:
        url = parse_url(store)
        if url.namespace != _DEFAULT_NAMESPACE:
            yield url
            return
        own = replace(url, namespace=f"{_DEFAULT_NAMESPACE}-{uuid4().hex}")
        try:
            yield own
        finally:
            await _delete_keys(own)


async def _delete_keys(url: RedisUrl) -> None:
    """Delete all keys of a namespace that no other has in its name. Raises `StoreError`."""
    from korvet_fast.store.redis.connection.topology import Topology  # redis-py is slow to import

    topology = Topology(url)
    pattern = f"*{url.namespace}:*"
    try:
        await topology.open()
        for master in topology.masters():
            cursor: bytes | None = None
            while cursor != b"0":
                cursor, keys = await topology.call(master, "SCAN", cursor or b"0", "MATCH", pattern, "COUNT", _AT_ONCE)
                for key in keys:
                    await topology.call(master, "UNLINK", key)
    finally:
        await topology.close()
