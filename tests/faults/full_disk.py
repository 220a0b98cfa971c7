"""Takes the room of a small disk, and gives it back."""

import os
from pathlib import Path


def fill(place: Path) -> None:
    """Take the last byte of the disk."""
    descriptor = os.open(place.with_name("rest"), os.O_WRONLY | os.O_CREAT)
    for size in (100_000, 4096, 1):
        try:
            while True:
                os.write(descriptor, bytes(size))
        except OSError as error:
            assert error.errno == 28  # ENOSPC
    os.close(descriptor)


def make_room(filler: Path) -> None:
    filler.unlink()
    filler.with_name("rest").unlink(missing_ok=True)
