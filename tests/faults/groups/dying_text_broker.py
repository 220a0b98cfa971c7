"""A broker that kills itself at one step of the writing of `groups.json` and `offsets.json`. Not a test itself.

Its first argument is the number of the step; the rest is the command that it runs in place of. The steps of a
write are: the temporary file is open, it is half written, written, flushed, renamed, and the directory is flushed.
"""

import os
import signal
import sys
from pathlib import Path

from korvet_fast.cli import main
from korvet_fast.store.embedded import files, plain_files

_left = int(sys.argv[1])
del sys.argv[1:5]  # python -m korvet_fast, too


def _step() -> None:
    global _left
    _left -= 1
    if _left == 0:
        os.kill(os.getpid(), signal.SIGKILL)


def _replace_file(path: Path, data: bytes) -> None:
    """As `files.replace_file`, a step at a time."""
    fresh = path.with_name(path.name + ".new")
    with fresh.open("wb", buffering=0) as file:
        _step()
        file.write(data[: len(data) // 2])
        _step()
        file.write(data[len(data) // 2 :])
        _step()
        os.fsync(file.fileno())
        _step()
    fresh.replace(path)
    _step()
    files.sync_directory(path.parent)
    _step()


plain_files.replace_file = _replace_file
main()
