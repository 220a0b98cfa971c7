"""Names of logs on disk: `orders:0` is the directory `orders-0`, as in Kafka."""

import re

REMOVED = "@removed"  # where dropped logs wait to be deleted
_LOG = re.compile(r"@registry:0|[A-Za-z0-9._-]{1,249}:\d{1,5}", re.ASCII)
_DIRECTORY = re.compile(r"@registry|@registry-0|[A-Za-z0-9._-]{1,249}-\d{1,5}", re.ASCII)


def directory_name(log: str) -> str:
    """The directory of a log. Raises `ValueError` for any other name: names must not lead out of the store."""
    if _LOG.fullmatch(log) is None:
        raise ValueError(f"{log!r} is not the name of a log")
    return "-".join(log.rsplit(":", 1))


def log_name(directory: str) -> str | None:
    """The log a directory belongs to; None if it is not one of ours."""
    if _DIRECTORY.fullmatch(directory) is None:
        return None
    return directory if directory == "@registry" else ":".join(directory.rsplit("-", 1))
