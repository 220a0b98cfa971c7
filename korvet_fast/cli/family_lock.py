"""The lock of a directory that several workers and their parent have together."""

import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

import click

from korvet_fast.core.groups.text_files import GROUPS
from korvet_fast.errors import StoreError
from korvet_fast.store.embedded.lock import HolderUnknown, Lock
from korvet_fast.store.embedded.recovery import discard_checkpoint
from korvet_fast.store.embedded.unreadable import explain
from korvet_fast.store.redis.connection.url import RedisUrl

_FAREWELL: Final = 10.0  # seconds that the workers of an earlier parent, which was killed, have to end
_LOOK: Final = 0.1  # seconds between two looks at whether they have


class WorkerIdentity(NamedTuple):
    """One worker of a family. `number`: from 1 on. `locks`: what `family_lock` yields."""

    number: int
    locks: Path


@contextmanager
def family_lock(place: Path | RedisUrl) -> Iterator[Path]:
    """Lock the directory for the parent and all of its workers: it is free when the last of them has gone.

    Yields the file of the locks that the workers have on each other. It is in memory and has no name: all workers
    inherit it from the parent, so nobody can delete it, and none can have another one.
    Raises `click.ClickException` if the directory cannot be used by several workers.
    """
    assert isinstance(place, Path), "workers share files"
    lock, groups = Lock(place), place / GROUPS
    try:
        _claim(lock)
        if groups.exists() and json.loads(groups.read_bytes()):
            raise click.ClickException(
                f"{groups} has groups of the text protocol, which one worker keeps there for people to read, and "
                "several cannot: serve them with --workers 1, or remove the file with the offsets in it"
            )
        discard_checkpoint(place)
        locks = os.memfd_create("workers")
    except StoreError as error:
        raise click.ClickException(error.detail) from None
    except OSError as error:
        raise click.ClickException(explain(error, place)) from None
    except ValueError as error:
        raise click.ClickException(f"{groups} cannot be read: {error}") from None
    try:
        yield Path(f"/proc/self/fd/{locks}")
    finally:
        os.close(locks)
        lock.release()


def _claim(lock: Lock) -> None:
    """Take the lock, if need be from the workers of a parent that is gone, which are ending. Raises `StoreError`."""
    for _ in range(int(_FAREWELL / _LOOK)):
        try:
            lock.claim()
        except HolderUnknown:
            time.sleep(_LOOK)
        else:
            return
    lock.claim()
