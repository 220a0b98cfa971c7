"""Files of a store that cannot be opened: which, why, and what a person has to do about them."""

import errno
import os
import pwd
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from korvet_fast.errors import RAISE_FILE_LIMIT
from korvet_fast.store.embedded.names import log_name
from korvet_fast.store.embedded.recovery import CHECKPOINT
from korvet_fast.store.embedded.registry import NAME

ADVICE: Final = {
    errno.EISDIR: "a file belongs there: move the directory away, and copy the file back",
    errno.ENOTDIR: "a directory belongs there: move the file away, and copy the directory back",
    errno.EEXIST: "a directory belongs there: move the file away, and copy the directory back",
    errno.ENOSPC: "make room",
    errno.EDQUOT: "make room",
    errno.EIO: "the disk fails: see the kernel's log",
    errno.EMFILE: RAISE_FILE_LIMIT,
    errno.ENFILE: "raise the limit of files that this machine may open (`sysctl fs.file-max`)",
    errno.EROFS: "mount it for writing",
}


def explain(error: OSError, store: Path) -> str:
    """The file that cannot be opened, the system's reason, and what to do. `store`: the directory with the files."""
    file = Path(error.filename) if isinstance(error.filename, str | os.PathLike) else store
    denied = error.errno in (errno.EACCES, errno.EPERM)
    advice = _advise_owner(file, store) if denied else ADVICE.get(error.errno or 0)
    return f"{file} cannot be opened: {error.strerror or error}" + (f"; {advice}" if advice else "")


def _advise_owner(file: Path, store: Path) -> str:
    try:
        owner = file.stat().st_uid
    except OSError:  # its directory may not be looked into: that is what has to change
        return _advise_owner(file.parent, store)
    user = os.geteuid()
    if owner == user:
        return f"give its owner, this user, the right: `chmod u+rwX {shlex.quote(str(file))}`"
    return (
        f"it belongs to {_name_user(owner)}: run this as {_name_user(owner)}, or have root do "
        f"`chown -R {_name_user(user)} {shlex.quote(str(store))}`"
    )


def _name_user(user: int) -> str:
    try:
        return pwd.getpwuid(user).pw_name
    except KeyError:
        return str(user)


def find_unreadable(store: Path, plain_files: Sequence[str]) -> Iterator[OSError]:
    """Open each file that a start opens, in the same way: the errors of those that cannot be. Changes nothing.

    `plain_files`: the names of those that core keeps in the directory `store`.
    """
    try:
        with os.scandir(store) as entries:
            logs = sorted(e.path for e in entries if e.name == NAME or (log_name(e.name) is not None and e.is_dir()))
    except OSError as error:
        yield error
        return
    for name in (CHECKPOINT, *plain_files):
        yield from _try(f"{store}/{name}", os.O_RDONLY)
    for log in logs:
        try:
            names = sorted(os.listdir(log))  # noqa: PTH208  (the error has to come here)
        except OSError as error:
            yield error
            continue
        for name in names:
            if name.endswith(".log"):
                yield from _try(f"{log}/{name}", os.O_RDWR)
            elif name.endswith(".index") or name == "start":
                yield from _try(f"{log}/{name}", os.O_RDONLY)


def _try(file: str, flags: int) -> Iterator[OSError]:
    try:
        descriptor = os.open(file, flags | os.O_CLOEXEC | os.O_NONBLOCK)
    except FileNotFoundError:
        return  # there is none, or a broker has just removed it
    except OSError as error:
        yield error
        return
    try:
        os.pread(descriptor, 1, 0)
    except OSError as error:  # a directory can be opened for reading
        error.filename = file
        yield error
    finally:
        os.close(descriptor)
