"""The audit log: who did what to which resource, and whether that was allowed, as lines of JSON in a file.

The loop only queues an entry; a thread writes it. Where the queue or the disk is full, lines are dropped and counted:
nobody waits for this log, and denials by the hundred thousand hold no more memory than the queue. Of one address no
more lines wait than there is room for others, so a client that is denied without end keeps nobody else's lines out.
"""

import json
import logging
import os
import stat
import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from math import inf
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Final, NamedTuple, TypeAlias
from weakref import WeakValueDictionary

from korvet_fast.config import Settings
from korvet_fast.config_acl import AUDIT_ALLOWED, AUDIT_FILE
from korvet_fast.core.acls.binding import Operation, PatternType, ResourceType
from korvet_fast.core.acls.index import normalize_host
from korvet_fast.core.clock import Clock
from korvet_fast.errors import SettingError, TooFewThreads

log = logging.getLogger(__name__)

QUEUE: Final = 10_000  # entries that wait for the thread
LONGEST: Final = 512  # characters of a name, as many as an ACL's name may have
_AT_ONCE: Final = 64  # lines of one write: the thread holds the interpreter for a millisecond or two
_REST: Final = 0.02  # seconds between two full writes: the loop has the interpreter, and the disk is filled slowly
_INTERVAL: Final = 10.0  # seconds between two warnings of dropped lines
_PATIENCE: Final = 5.0  # seconds that the last lines have when the broker stops
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_AUTHENTICATE: Final = "AUTHENTICATE"
# O_NONBLOCK: of a pipe that nobody reads, lines are dropped. O_RDWR: the last byte of a file is read.
_FLAGS: Final = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY


class AuditEntry(NamedTuple):
    """A decision. `listener`: its endpoint, or ""; `api`: Kafka's name of the request, a command, or a page's path.

    `operation` and `resource` None: somebody said who it is and was not believed; `reason` says why.
    """

    principal: str
    host: str
    listener: object
    api: str
    allowed: bool
    operation: Operation | None = None
    resource: ResourceType | None = None
    name: str = ""
    reason: str = ""


class _Waiting:
    """The lines of one address that wait: `put` by the loop, less those `taken` by the thread; each counts its own."""

    __slots__ = ("__weakref__", "put", "taken")

    def __init__(self) -> None:
        self.put = self.taken = 0


_Line: TypeAlias = tuple[int, AuditEntry, _Waiting]


class AuditLog:
    """The audit log of one broker. `put` is for the loop's thread. `logs_allowed`: what is allowed is written too."""

    def __init__(self, path: str, clock: Clock, *, logs_allowed: bool = False) -> None:
        """Raises `SettingError` if the file cannot be written, `TooFewThreads`."""
        self.logs_allowed = logs_allowed
        self._clock = clock
        self._queue: SimpleQueue[_Line | None] = SimpleQueue()
        self._waiting: WeakValueDictionary[str, _Waiting] = WeakValueDictionary()  # by address; gone with the last line
        self._closed = False
        # Two counters, as two threads count; of each only one.
        self._refused = self._lost = 0
        self._told, self._told_at = 0, -inf
        self._why = ""  # the disk's reason, since the last warning
        try:
            self._file = AuditFile(path)
        except OSError as error:
            raise SettingError(f"{AUDIT_FILE}: {path}: {error.strerror}") from None
        self._thread = Thread(target=self._run, name="audit", daemon=True)  # a disk that hangs keeps no process
        try:
            self._thread.start()
        except RuntimeError as error:
            self._file.close()
            raise TooFewThreads from error

    @property
    def dropped(self) -> int:
        """Lines that were dropped since the start."""
        return self._refused + self._lost

    def put(self, entry: AuditEntry) -> None:
        """Have this entry written; dropped where too many wait, or too many of its address."""
        waiting = self._waiting.get(entry.host)
        if waiting is None:
            waiting = self._waiting[entry.host] = _Waiting()
        if self._closed or waiting.put - waiting.taken >= QUEUE - self._queue.qsize():
            self._refused += 1
            self._report()
            return
        if entry.operation is None:  # whoever is not let in may claim any name
            entry = entry._replace(principal=_shorten(entry.principal), reason=_shorten(entry.reason))
        elif len(entry.name) > LONGEST:
            entry = entry._replace(name=_shorten(entry.name))
        waiting.put += 1
        self._queue.put((self._clock.wall(), entry, waiting))

    def close(self) -> None:
        """Write what waits, for five seconds at most; what comes later is dropped. It blocks."""
        self._closed = True
        self._queue.put(None)
        self._thread.join(_PATIENCE)

    def _run(self) -> None:
        last = False
        while not last:
            taken = self._take()
            last = None in taken
            lines = []
            for one in taken:
                if one is not None:
                    ms, entry, waiting = one
                    waiting.taken += 1
                    lines.append(write_line(ms, entry))
            if lines:
                written, why = self._file.append(lines)
                self._lost += len(lines) - written
                self._why = why or self._why
            self._report(last=last)
            if len(lines) == _AT_ONCE and not self._closed:
                time.sleep(_REST)
        self._file.close()

    def _take(self) -> list[_Line | None]:
        """The next entries, once there are any; None is the last one. [] where there is something to report."""
        found: list[_Line | None] = []
        try:
            found.append(self._queue.get(timeout=None if self.dropped == self._told else _INTERVAL))
            while found[-1] is not None and len(found) < _AT_ONCE:
                found.append(self._queue.get_nowait())
        except Empty:
            pass
        return found

    def _report(self, *, last: bool = False) -> None:
        """Warn of lines that were dropped since the last warning, if it is time, or this is the `last` one."""
        now, dropped = self._clock.monotonic(), self.dropped
        if dropped == self._told or (now < self._told_at + _INTERVAL and not last):
            return
        lines, self._told, self._told_at = dropped - self._told, dropped, now
        why, self._why = self._why or "more came than can be written", ""
        log.warning("%d lines of the audit log were dropped: %s", lines, why)


class AuditFile:
    """The file. Who renames it (logrotate) has the next lines written into a new one of the same name."""

    def __init__(self, path: str) -> None:
        """Raises `OSError`."""
        self._path = path
        self._descriptor, self._torn = _open(path)

    def append(self, lines: Sequence[bytes]) -> tuple[int, str]:
        """Write lines; returns how many are in the file, and why not all; "" if they are."""
        data, done, why = b"", 0, ""
        try:
            self._follow_path()
            # What a full disk has left of a line stays alone.
            data = b"".join((b"\n" if self._torn else b"", *lines))
            while done < len(data):
                done += os.write(self._descriptor, memoryview(data)[done:])
        except OSError as error:
            why = f"{self._path}: {error.strerror}"
        if not done:
            return 0, why
        written = data.count(b"\n", 0, done) - self._torn
        self._torn = not data.endswith(b"\n", 0, done)
        return written, why

    def close(self) -> None:
        """Write no more."""
        os.close(self._descriptor)

    def _follow_path(self) -> None:
        """Open the path anew if another file is there, or none. Raises `OSError`."""
        try:
            found = os.stat(self._path)  # noqa: PTH116  once a write
            if os.path.samestat(found, os.fstat(self._descriptor)):
                return
        except FileNotFoundError:
            pass
        old = self._descriptor
        self._descriptor, self._torn = _open(self._path)
        os.close(old)


def _open(path: str) -> tuple[int, bool]:
    """A descriptor, and whether the file ends in the middle of a line: its disk was full. Raises `OSError`."""
    descriptor = os.open(path, _FLAGS, 0o600)
    try:
        status = os.fstat(descriptor)
        size = status.st_size if stat.S_ISREG(status.st_mode) else 0
        return descriptor, size > 0 and os.pread(descriptor, 1, size - 1) != b"\n"
    except OSError:
        os.close(descriptor)  # it is tried again with every write
        raise


def open_audit_log(settings: Settings, clock: Clock) -> AuditLog | None:
    """The log of audit.log.file; None without one. Raises as `AuditLog`."""
    path = settings.text(AUDIT_FILE)
    return AuditLog(path, clock, logs_allowed=settings.flag(AUDIT_ALLOWED)) if path else None


def write_line(ms: int, entry: AuditEntry) -> bytes:
    """An entry as one line of ASCII: what is in a name ends no line and no string."""
    moment = (_EPOCH + timedelta(milliseconds=ms)).isoformat(timespec="milliseconds")
    fields = {
        "time": moment.removesuffix("+00:00") + "Z",
        "principal": entry.principal,
        "host": normalize_host(entry.host),
        "listener": str(entry.listener),
        "api": entry.api,
        "operation": _AUTHENTICATE if entry.operation is None else entry.operation.name,
    }
    if entry.resource is not None:
        fields["resourceType"] = entry.resource.name
        fields["resourceName"] = entry.name
        fields["patternType"] = PatternType.LITERAL.name  # as in Kafka's log: a request names one resource
    fields["result"] = "Allowed" if entry.allowed else "Denied"
    if entry.reason:
        fields["reason"] = entry.reason
    return json.dumps(fields).replace("\x7f", "\\u007f").encode() + b"\n"


def _shorten(text: str) -> str:
    return text if len(text) <= LONGEST else text[:LONGEST] + "…"
