"""The limit of open files of `serve`: raised as far as this user may, and enough for a start."""

import resource
from typing import Final

import click

from korvet_fast.errors import RAISE_FILE_LIMIT

# A file and HTTP were measured to need 19, and three workers 34; segment files and the first clients come on top.
_ALONE: Final = 62
_LISTENER: Final = 2
_WORKER: Final = 4  # for the parent, and for its connections to the others


def raise_file_limit(listeners: int, workers: int) -> None:
    """Take as many descriptors as this process may have, for connections and segment files.

    Raises `click.ClickException` if a broker with so many listeners, and each of so many workers, could not start.
    """
    lack = file_limit_error(listeners, workers)
    if lack is not None:
        raise click.ClickException(lack)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def file_limit_error(listeners: int, workers: int) -> str | None:
    """Why a broker with so many listeners, and each of so many workers, could not start; None: it could."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = _ALONE + _LISTENER * listeners + _WORKER * (workers - 1)
    if hard == resource.RLIM_INFINITY or hard >= needed:
        return None
    return f"this process may open {hard} files, and this broker needs at least {needed}: {RAISE_FILE_LIMIT}"
