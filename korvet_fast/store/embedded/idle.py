"""Closing the logs that nobody uses: their state in memory is packed, and their files are closed."""

import asyncio
from collections.abc import Callable, Mapping
from itertools import islice

from korvet_fast.store.embedded.files import Files
from korvet_fast.store.embedded.log import Log
from korvet_fast.store.embedded.reader import Reader
from korvet_fast.store.embedded.removals import Removals

_AT_ONCE = 64  # logs that are looked at in one turn of the loop


async def close_idle(
    logs: Mapping[str, Log],
    removals: Removals,
    reader: Reader,
    files: Files,
    flush: Callable[[Log], object],
) -> None:
    """Close the logs that nobody used since the last call, but those whose records are being removed.

    `flush`: for a log with full segments that were not flushed. They get their indexes, and the next call closes it.
    """
    names = iter(list(logs))
    while some := list(islice(names, _AT_ONCE)):
        for log in filter(None, map(logs.get, some)):
            if log.used or removals.under_way(log.name):  # removing records keeps segments of the log over waits
                log.used = False
                continue
            if log.unflushed and not log.failed:
                flush(log)
            if log.is_idle and not log.is_closed:
                _close(log, reader, files)
        await asyncio.sleep(0)


def _close(log: Log, reader: Reader, files: Files) -> None:
    segments = log.close()
    reader.forget(segments)
    for segment in segments:
        files.forget(segment.path)
