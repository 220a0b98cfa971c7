"""Names of logs on disk: `orders:0` is the directory `orders-0`, as in Kafka."""

import re
from uuid import uuid4

REMOVED = "@removed"  # where dropped logs wait to be deleted
_STRAY = "-stray"  # ends the name of a directory that was set aside
_LONGEST = 255  # bytes of a name, on most file systems
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


def stray_name(log: str) -> str:
    """A directory for a log that is set aside, as Kafka names it (LogManager): `orders-0.<uuid>-stray`.

    It is no log's own. A long topic is shortened. Raises `ValueError` as `directory_name`.
    """
    topic, _, index = directory_name(log).rpartition("-")
    suffix = f"-{index}.{uuid4().hex}{_STRAY}"
    return topic[: _LONGEST - len(suffix)] + suffix
