"""Checks the store's directory: rights, the broker that has it, file system, flushes, room."""

import errno
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import NamedTuple

from korvet_fast.cli.doctor.clock import examine_files_clock
from korvet_fast.cli.doctor.finding import Finding, bad, good, warn
from korvet_fast.cli.doctor.registry import examine_registry
from korvet_fast.core.cluster.identity import KEY, read_cluster_id
from korvet_fast.core.groups.text_files import GROUPS, OFFSETS
from korvet_fast.errors import StoreError
from korvet_fast.store.embedded.copies import find_missing_copies
from korvet_fast.store.embedded.lock import Lock
from korvet_fast.store.embedded.registry import NAME, read_key
from korvet_fast.store.embedded.unreadable import explain, find_unreadable

FLUSHES = 20
SUSPICIOUS = 50e-6  # seconds; a disk that has to reach its medium, or a protected cache, does not answer faster
LITTLE = 1 << 30  # bytes
NEXT_TO_NOTHING = 64 << 20

# File systems on which a flush does not mean what it means on a disk of one's own.
MEMORY = {"tmpfs", "ramfs"}
LAYERED = {"overlay", "overlayfs", "aufs"}
REMOTE = {"nfs", "nfs4", "cifs", "smb3", "9p", "fuse.sshfs", "virtiofs", "ceph"}


class Mount(NamedTuple):
    """The file system a directory lies on."""

    kind: str
    point: str
    options: frozenset[str]


class Ground(NamedTuple):
    """The findings about the disk, which the promise of acks=all rests on."""

    findings: list[Finding]
    kept: bool  # flushed data survives a power failure, as far as can be known
    cluster_id: str | None  # of the cluster whose broker uses the directory now; "" if none does, None: not known


def examine_store(directory: Path) -> Ground:
    """Look at the directory a broker would use, or the nearest one above it that exists. Leaves nothing behind."""
    existing = _nearest(directory)
    findings = [*_use(directory, existing)]
    cluster_id = _find_cluster_id(directory)
    if existing == directory.absolute() and _may_enter(existing):
        unreadable = list(_examine_files(existing))
        findings += unreadable
        if not unreadable and cluster_id == "":
            findings += examine_registry(existing)
    mount = find_mount(existing.resolve(), Path("/proc/self/mountinfo").read_text())
    findings.append(judge_mount(mount))
    if _may_enter(existing):  # else that is told already
        try:
            seconds = time_flushes(existing)
        except OSError as error:
            findings.append(bad("directory", f"cannot write in {existing}: {error.strerror}. {_advise(error)}"))
        else:
            findings.append(judge_flushes(seconds, mount))
    usage = shutil.disk_usage(existing)
    findings += [judge_space(usage.free, usage.total), *examine_files_clock(directory)]
    return Ground(findings, mount.kind not in MEMORY, cluster_id)


def _nearest(directory: Path) -> Path:
    path = directory.absolute()
    while not os.path.exists(path):  # noqa: PTH110 (Path.exists raises where we may not look)
        path = path.parent
    return path


def _advise(error: OSError) -> str:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return "Make room there."
    if error.errno == errno.EROFS:
        return "Mount it for writing."
    if error.errno == errno.EIO:
        return "See the kernel's log: the disk fails."
    return "Let this user write there."


def _use(directory: Path, existing: Path) -> Iterator[Finding]:
    if not existing.is_dir():
        yield bad("directory", f"{existing} is a file; name a directory with --store file:DIRECTORY")
    elif existing != directory.absolute():
        yield good("directory", f"{directory} does not exist yet; the broker will make it")
    elif not _may_enter(existing):
        yield bad("directory", explain(PermissionError(errno.EACCES, os.strerror(errno.EACCES)), existing))
    else:
        try:
            Lock(directory).check()
        except StoreError as error:
            used = error.detail.partition(";")[0]
            yield good("directory", f"a broker is running: {used}; another one starts there when that has stopped")
        except PermissionError as error:
            yield bad("directory", explain(error, directory))
        except OSError as error:
            yield bad("directory", f"cannot lock {directory}: {error.strerror}. {_advise(error)}")
        else:
            holds_store = any(os.path.exists(directory / name) for name in (".lock", NAME))  # noqa: PTH110 (see above)
            told = "holds a store, and no broker uses it now" if holds_store else "exists and holds no store yet"
            yield good("directory", f"{directory} {told}")


def _may_enter(directory: Path) -> bool:
    return directory.is_dir() and os.access(directory, os.R_OK | os.X_OK)


def _examine_files(directory: Path) -> Iterator[Finding]:
    unreadable = list(find_unreadable(directory, (GROUPS, OFFSETS)))
    if unreadable:
        others = f" ({len(unreadable) - 1:,} more cannot be opened)" if len(unreadable) > 1 else ""
        yield bad("files", f"{explain(unreadable[0], directory)}{others}")


def _find_cluster_id(directory: Path) -> str | None:
    """The cluster id of the broker that uses the directory now; "" if none does.

    None: it has only just begun, or it copies other brokers' files and has the id from the metadata log.
    """
    try:
        Lock(directory).check()
    except OSError:
        return ""  # told already
    except StoreError:
        return read_cluster_id(read_key(directory, KEY)) or None
    return ""


def find_mount(path: Path, mountinfo: str) -> Mount:
    """The mount a path lies on. `mountinfo`: /proc/self/mountinfo, as proc(5) describes it."""
    best = Mount("unknown", "", frozenset())
    for line in mountinfo.splitlines():
        left, _, right = line.partition(" - ")
        fields, (kind, _, options) = left.split(), right.split(" ", 2)
        point = fields[4].encode().decode("unicode_escape")  # blanks are written \040
        # The later of two mounts on one point hides the earlier.
        if path.is_relative_to(point) and len(point) >= len(best.point):
            best = Mount(kind, point, frozenset((fields[5] + "," + options).split(",")))
    return best


def judge_mount(mount: Mount) -> Finding:
    """A finding about the file system: whether its flushes can be trusted."""
    where = f"{mount.kind} mounted on {mount.point}"
    if mount.kind in MEMORY:
        return bad("file system", f"{where} lives in memory: nothing survives a restart of the machine. Use a disk.")
    if mount.kind in LAYERED:
        return warn("file system", f"{where} is a container's own layer, gone with the container. Mount a volume.")
    if mount.kind in REMOTE:
        return warn("file system", f"{where} is kept by another machine: a flush is worth what that one makes of it.")
    if mount.options & {"nobarrier", "barrier=0"}:
        return warn("file system", f"{where} is mounted without barriers: the disk may keep flushed data in its cache.")
    return good("file system", where)


def time_flushes(directory: Path) -> float:
    """The median time in seconds of a 4 KiB append with fdatasync there. Raises `OSError`."""
    times = []
    with tempfile.NamedTemporaryFile(dir=directory, prefix=".korvet-doctor-") as file:
        for _ in range(FLUSHES):
            os.write(file.fileno(), bytes(4096))
            started = time.perf_counter()
            os.fdatasync(file.fileno())
            times.append(time.perf_counter() - started)
    return median(times)


def judge_flushes(seconds: float, mount: Mount) -> Finding:
    """Whether the flush looks like one that reached a disk."""
    took = f"a flush of 4 KiB takes {seconds * 1e6:,.0f} µs"
    if mount.kind in MEMORY:
        return warn("flush", f"{took} and does nothing: there is no disk below")
    if seconds < SUSPICIOUS:
        return warn(
            "flush",
            f"{took}, faster than a disk can: something below (a virtual machine's host, a controller) answers before "
            "the data is safe, or has a protected cache. Only its maker can tell.",
        )
    return good("flush", f"{took}; writers that wait at the same time share one")


def judge_copies(copies: int) -> Iterator[Finding]:
    """The finding where `min.insync.replicas` asks for this many copies. A store on files holds one."""
    if why := find_missing_copies(copies):
        yield bad("durability", why)


def judge_space(free: int, total: int) -> Finding:
    """Whether there is room to write."""
    unit, size = ("GiB", 1 << 30) if total >= 1 << 30 else ("MiB", 1 << 20)
    text = f"{free / size:,.1f} {unit} of {total / size:,.1f} {unit} are free"
    if free < NEXT_TO_NOTHING:
        return bad("space", f"{text}; appends will fail. Make room, or lower log.retention.bytes.")
    if free < max(LITTLE, total // 20):
        return warn("space", f"{text}; when it is full, appends fail until there is room.")
    return good("space", text)
