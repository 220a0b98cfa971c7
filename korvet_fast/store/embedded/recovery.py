"""Opening a directory: as the checkpoint of a clean shutdown says, or by looking at every log's end.

After an unclean stop, the bytes that no index file vouches for are flushed, read from the disk, checked by CRC, and cut
at the first bad one. So everything that can be read afterwards is durable. A flush that succeeds is not enough: after a
write that failed, the page cache calls pages clean that no disk holds.
"""

import json
import logging
import os
import shutil
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import Executor
from pathlib import Path
from typing import Any, NamedTuple

from korvet_fast.errors import StoreError
from korvet_fast.store.embedded.files import Handle, replace_file, sync_directory
from korvet_fast.store.embedded.group_commit import write_index
from korvet_fast.store.embedded.index import Index, Summary, read_summary
from korvet_fast.store.embedded.log import Log, LogCollaborators
from korvet_fast.store.embedded.names import REMOVED, log_name
from korvet_fast.store.embedded.registry import NAME
from korvet_fast.store.embedded.retention import read_start
from korvet_fast.store.embedded.segment import Segment

CHECKPOINT = "checkpoint"
DAMAGED = ".damaged"  # ends the name of a file that keeps the bytes cut off the registry
_VERSION = 1
_MUCH = 128 << 20  # bytes that a slow disk may take a second and more to read: the log says so
_SECTOR = 512  # bytes: no file system has smaller blocks

_logger = logging.getLogger(__name__)


def open_logs(directory: Path, given: LogCollaborators, pool: Executor) -> dict[str, Log]:
    """All logs of a store, ready to use. Takes the checkpoint away: from now on it would be wrong.

    Raises `StoreError` and `OSError`.
    """
    if (directory / REMOVED).exists():
        shutil.rmtree(directory / REMOVED)
    kept = _read_checkpoint(directory / CHECKPOINT)
    with os.scandir(directory) as entries:
        names = {entry.name: log_name(entry.name) for entry in entries if entry.is_dir()}
    logs = {}
    uncertain: list[tuple[str, Path, LogCollaborators]] = []
    for place, name in names.items():
        if name is None:
            continue  # not ours
        log = _reopen(name, directory / place, given, kept.get(place))
        if log is not None:
            logs[name] = log
        else:
            uncertain.append((name, directory / place, given))
    recovered = list(pool.map(lambda found: recover_log(*found), uncertain))
    logs.update((one.log.name, one.log) for one in recovered)
    _tell_of_recovery(directory, len(logs), recovered)
    (directory / CHECKPOINT).unlink(missing_ok=True)
    sync_directory(directory)
    registry = logs.get(NAME)
    if registry is None or registry.start == registry.end:
        tell_of_lost_registry(directory, sorted(name for name, log in logs.items() if log.start < log.end))
    return logs


def discard_checkpoint(directory: Path) -> None:
    """Take away what a clean shutdown of one process left, before several open the logs. Raises `OSError`."""
    if (directory / REMOVED).exists():
        shutil.rmtree(directory / REMOVED)
    (directory / CHECKPOINT).unlink(missing_ok=True)
    sync_directory(directory)


class RecoveredLog(NamedTuple):
    """A log that was looked at, and how many bytes of it were read, and truncated, removed segments included."""

    log: Log
    read: int
    truncated: int


class _Looked(NamedTuple):
    """A segment that was looked at, how many bytes of it were read, and how many truncated."""

    segment: Segment
    read: int
    truncated: int


def _tell_of_recovery(directory: Path, logs: int, recovered: list[RecoveredLog]) -> None:
    if any(one.read or one.truncated for one in recovered):  # after workers that ended well there is no checkpoint
        truncated = [one.truncated for one in recovered if one.truncated]
        _logger.info(
            "%s was not closed cleanly: looked at %d of %d logs, checked %d bytes, cut %d bytes off %d of them",
            directory,
            len(recovered),
            logs,
            sum(one.read for one in recovered),
            sum(truncated),
            len(truncated),
        )


def tell_of_lost_registry(directory: Path, held: Sequence[str]) -> None:
    """The registry is missing or empty. `held`: the logs with records that the store in `directory` has."""
    if held:
        _logger.error(
            "%s/%s, which says what topics, groups and settings there are, is missing or empty, and logs hold "
            "records (%d, the first %s): stop the broker and copy it back; else a topic made anew under its old name "
            "goes on with its records, and all other settings and offsets are lost",
            directory,
            NAME,
            len(held),
            held[0],
        )


def find_written(directory: Path) -> list[str]:
    """The logs of a store, the registry left out, whose files are not empty. Raises `OSError`."""
    with os.scandir(directory) as entries:
        names = {entry.path: log_name(entry.name) for entry in entries if entry.is_dir()}
    return sorted(
        name
        for place, name in names.items()
        if name not in (None, NAME) and any(file.stat().st_size for file in Path(place).glob("*.log"))
    )


def write_checkpoint(directory: Path, logs: Iterable[Log]) -> None:
    """Say how a clean shutdown leaves the logs, all of which are flushed. Raises `OSError`."""
    rows = {
        log.directory.name: [log.start, [[segment.base, _rows(segment), *segment.summary] for segment in log.segments]]
        for log in logs
    }
    replace_file(directory / CHECKPOINT, json.dumps({"version": _VERSION, "logs": rows}).encode())


def _read_checkpoint(path: Path) -> dict[str, Any]:
    try:
        kept = json.loads(path.read_bytes())
        if kept["version"] != _VERSION:
            raise StoreError(f"{path} was written by a newer version of this program; use that one")
        return dict(kept["logs"])
    except FileNotFoundError:
        return {}
    except (ValueError, TypeError, KeyError) as error:
        _logger.warning("%s is damaged, every log is looked at instead: %r", path, error)
        return {}


def _reopen(name: str, directory: Path, given: LogCollaborators, kept: Any) -> Log | None:
    """A log as its row of the checkpoint has it; None without a row, or if the log is not as it was left."""
    if kept is None:
        return None
    try:
        start, rows = kept
        segments = [_from_checkpoint(directory, *values) for values in rows]
        size = os.stat(f"{directory}/{segments[-1].name}").st_size  # noqa: PTH116  (a third of the time of Path.stat)
    except FileNotFoundError:
        size = -1
    except (ValueError, TypeError, IndexError) as error:
        _logger.warning("%s: its row of %s is damaged, looked at in full: %r", name, CHECKPOINT, error)
        return None
    if size != segments[-1].size:
        _logger.warning("%s: not as the last shutdown left it, looked at in full", name)
        return None
    return Log(name, directory, given, segments, start)


def _rows(segment: Segment) -> int:
    return -1 if segment.index is None else len(segment.index)  # -1: some, beside the segment


def _from_checkpoint(directory: Path, base: int, rows: int, *summary: int) -> Segment:
    return Segment(directory, base, Summary(*summary), None if rows else Index())


def recover_log(name: str, directory: Path, given: LogCollaborators) -> RecoveredLog:
    """A log as it was left by a process that is gone; what is damaged at its end is cut off, the rest is durable.

    Its directory exists. Raises `StoreError` and `OSError`.
    """
    start = read_start(directory)
    for leftover in directory.glob("*.new"):
        leftover.unlink()
    bases = _find_segments(directory)
    segments: list[Segment] = []
    read = truncated = 0
    for number, base in enumerate(bases):
        looked = _recover_segment(name, directory, base, given.interval)
        segments.append(looked.segment)
        read += looked.read
        truncated += looked.truncated
        following = bases[number + 1 :]
        if following and (looked.truncated or looked.segment.end != following[0]):
            truncated += _remove_segments(name, directory, following)
            break
    if not segments or segments[-1].end < start:
        truncated += _remove_segments(name, directory, [segment.base for segment in segments])
        return RecoveredLog(Log.create(name, directory, given, start), read, truncated)
    if _is_blank_at_end(segments[-1]):
        segments.append(Segment.create(directory, segments[-1].end))
    for segment in segments[:-1]:
        if write_index(segment):
            segment.index = None  # the segment does not grow any more
    sync_directory(directory)
    return RecoveredLog(Log(name, directory, given, segments, max(start, segments[0].base)), read, truncated)


def _find_segments(directory: Path) -> list[int]:
    """The base offsets of a log's segments. Raises `OSError` where `Path.glob` finds nothing in silence."""
    try:
        names = os.listdir(directory)  # noqa: PTH208  (names are enough)
    except FileNotFoundError:
        return []
    stems = (name.removesuffix(".log") for name in names if name.endswith(".log"))
    return sorted(int(stem) for stem in stems if stem.isdecimal())


def view_log(name: str, directory: Path, given: LogCollaborators) -> Log:
    """A log as it lies there, to look at: another process may be writing it, and nothing is changed.

    Raises `StoreError` and `OSError`.
    """
    start = read_start(directory)
    segments: list[Segment] = []
    for base in _find_segments(directory):
        if segments and segments[-1].end != base:
            break
        segment = Segment(directory, base)
        size = segment.path.stat().st_size
        summary = read_summary(segment.index_path)
        known = summary is not None and summary.size == size
        segments.append(
            Segment(directory, base, summary) if known else segment.scan(size, given.interval, verify=False)
        )
    log = Log(name, directory, given, segments, max(start, segments[0].base) if segments else start)
    log.durable = max((segment.end for segment in segments if segment.index is None), default=log.start)
    return log


def _recover_segment(name: str, directory: Path, base: int, interval: int) -> _Looked:
    """Check one segment, and cut off damaged bytes at its end."""
    path = Segment(directory, base).path
    size = path.stat().st_size
    summary = read_summary(path.with_suffix(".index"))
    if summary is not None and summary.size == size:
        return _Looked(Segment(directory, base, summary), 0, 0)
    unknown = size - (summary.size if summary is not None and summary.size <= size else 0)
    if unknown >= _MUCH:
        _logger.info("%s: not closed cleanly; %d MB of it are read and checked", path, unknown / 1e6)
    handle = Handle(path)
    os.fsync(handle.fd)
    segment = Segment(directory, base).scan(size, interval, verify=True)
    if segment.size < size:
        _logger.warning("%s: %d bytes cut off behind offset %d", path, size - segment.size, segment.end)
        if name == NAME:
            _keep_aside(path, segment.size)
        os.ftruncate(handle.fd, segment.size)
        os.fsync(handle.fd)
    return _Looked(segment, unknown, size - segment.size)


def _keep_aside(path: Path, position: int) -> None:
    """Copy what stands from `position` on in a file of the registry: settings, topics and offsets may be in there."""
    aside = path.with_name(f"{path.name}.{time.time_ns()}{DAMAGED}")
    try:
        descriptor = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o640)
        with path.open("rb") as damaged, os.fdopen(descriptor, "wb") as copy:
            damaged.seek(position)
            shutil.copyfileobj(damaged, copy)
            copy.flush()
            os.fsync(copy.fileno())
    except OSError as error:  # a full disk's; acknowledged records are not there, as far as can be told
        aside.unlink(missing_ok=True)
        _logger.error("%s: the damaged bytes that are cut off cannot be kept in a file: %s", path, error.strerror)
        return
    _logger.error(
        "%s: the unreadable end of the registry is kept in %s. Where the machine has crashed, it is what was being "
        "written; else topics, settings and offsets saved last may be missing: compare with `topic list`",
        path,
        aside.name,
    )


def _is_blank_at_end(segment: Segment) -> bool:
    """Whether the file's last block, not full yet, may be one that was never written: it holds nothing but zeros.

    Such a block can be read, as zeros. A file system (ext4) whose write of the block has failed takes the block for
    written, and loses the bytes that are put into its rest.
    """
    rest = segment.size % _SECTOR
    return rest > 0 and not any(Handle(segment.path).read(rest, segment.size - rest))


def _remove_segments(name: str, directory: Path, bases: list[int]) -> int:
    """Remove these segments; how many bytes they had."""
    size = 0
    for base in reversed(bases):
        segment = Segment(directory, base)
        _logger.warning("%s: segment %d removed, because it lies behind lost records", name, base)
        size += segment.path.stat().st_size
        if name == NAME and segment.path.stat().st_size:
            _keep_aside(segment.path, 0)
        segment.path.unlink()
        segment.index_path.unlink(missing_ok=True)
    return size
