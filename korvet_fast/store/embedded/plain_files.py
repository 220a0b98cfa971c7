"""Small files beside the logs, for people to read."""

import asyncio
from concurrent.futures import Executor
from pathlib import Path

from korvet_fast.errors import StoreError
from korvet_fast.store.embedded.files import replace_file
from korvet_fast.store.embedded.unreadable import explain


class EmbeddedPlainFiles:
    """`PlainFiles` in the directory of the store, which opens and closes `pool`."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self.pool: Executor | None = None  # None: the store is not open

    async def read(self, name: str) -> bytes | None:
        """See `PlainFiles.read`."""
        try:
            return (self._directory / name).read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise StoreError(explain(error, self._directory)) from error

    async def write(self, name: str, data: bytes) -> None:
        """See `PlainFiles.write`."""
        if self.pool is None:
            raise StoreError("the store is closed")
        path = self._directory / name
        try:
            await asyncio.get_running_loop().run_in_executor(self.pool, replace_file, path, data)
        except OSError as error:
            raise StoreError(
                f"{path} cannot be written: {error.strerror}; make room, or see to the directory's permissions"
            ) from error
