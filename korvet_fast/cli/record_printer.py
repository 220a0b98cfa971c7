"""Prints records as they are fetched, until there are enough, and remembers how far each partition was printed."""

import asyncio
import io
import os
import stat
import sys
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from itertools import islice

from korvet_fast.cli.output import OutputClosed
from korvet_fast.cli.record_format import RecordFormat
from korvet_fast.client.consumer import Consumer, Record


class RecordPrinter:
    """`print_all` writes what a consumer fetches. `count`: records in all, None: no limit.

    `next_offsets`: by partition, the offset after the last record that is on standard output.
    """

    def __init__(self, form: RecordFormat, count: int | None) -> None:
        self.next_offsets: dict[int, int] = {}
        self._form = form
        self._left = count

    async def print_all(
        self, consumer: Consumer, ends: Mapping[int, int] | None, after_round: Callable[[], Awaitable[bool]]
    ) -> bool:
        """Print until there are enough records: True, or until `after_round` says False.

        `ends`: where to stop in each partition; None: never.
        """
        if ends is not None:
            for partition in [one for one, offset in consumer.positions.items() if offset >= ends[one]]:
                del consumer.positions[partition]
        while consumer.positions or ends is None:
            for partition, records in await consumer.fetch():
                position = consumer.positions[partition]
                end = None if ends is None else ends[partition]
                if self._print(partition, records, position, end):
                    return True
                if end is not None and position >= end:
                    del consumer.positions[partition]
            if not await after_round():
                return False
        return True

    def _print(self, partition: int, records: Iterator[Record], position: int, end: int | None) -> bool:
        """Print what was fetched of a partition, up to `position`, `end` or the count. True: there are enough."""
        if end is not None and position > end:
            records, position = (record for record in records if record.offset < end), end
        if self._left is not None:
            taken = list(islice(records, self._left))
            self._left -= len(taken)
            if self._left == 0:
                position = taken[-1].offset + 1
            records = iter(taken)
        out = sys.stdout.buffer
        out.write(b"".join(map(self._form, records)))
        out.flush()
        self.next_offsets[partition] = position
        return self._left == 0


@contextmanager
def output_watched() -> Iterator[None]:
    """Raise `OutputClosed` in the block as soon as the program that reads our output has gone, if that can be seen."""
    task, loop = asyncio.current_task(), asyncio.get_running_loop()
    assert task is not None, "a coroutine is run"
    closed = asyncio.Event()

    def end() -> None:
        loop.remove_reader(descriptor)
        closed.set()
        task.cancel()

    try:
        descriptor = sys.stdout.fileno()
    except io.UnsupportedOperation:  # no descriptor, but a buffer
        descriptor = -1
    watched = descriptor >= 0 and stat.S_ISFIFO(os.fstat(descriptor).st_mode)
    if watched:
        loop.add_reader(descriptor, end)  # the writing end of a pipe becomes ready when nobody has the other any more
    try:
        yield
    except asyncio.CancelledError:
        if closed.is_set():
            raise OutputClosed from None
        raise
    finally:
        if watched:
            loop.remove_reader(descriptor)
