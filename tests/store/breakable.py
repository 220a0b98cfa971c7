"""Flushes that a test can have fail, or look at."""

from pathlib import Path

import pytest

from korvet_fast._native import Flusher
from korvet_fast.store.embedded import group_commit


class Breakable:
    """The native `Flusher`, but while `Flushes.broken` is set nothing is flushed and every job fails."""

    def __init__(self, threads: int, flushes: "Flushes") -> None:
        self._real = Flusher(threads)
        self._flushes = flushes
        self._failing: set[int] = set()

    def fileno(self) -> int:
        return self._real.fileno()

    def flush(self, log: int, ticket: int, files: list[Path], directories: list[Path]) -> None:
        if self._flushes.broken:
            self._failing.add(ticket)
            files, directories = [], []
        self._flushes.files += files
        self._real.flush(log, ticket, files, directories)

    def take(self) -> list[tuple[int, str | None]]:
        return [(ticket, "broken" if ticket in self._failing else failure) for ticket, failure in self._real.take()]

    def spent(self) -> tuple[int, float]:
        return self._real.spent()

    def close(self) -> None:
        self._real.close()


class Flushes:
    """`files`: those flushed so far. Set `broken` to have flushes fail."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.broken = False
        self.files: list[Path] = []
        monkeypatch.setattr(group_commit, "Flusher", lambda threads: Breakable(threads, self))
