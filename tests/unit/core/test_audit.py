"""The audit log: lines that nobody can forge, a file that may be moved away, and a broker that waits for neither."""

import errno
import json
import logging
import os
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from batches import NOW
from core_world import StillClock
from korvet_fast.config import read_settings
from korvet_fast.core.acls.binding import Operation, ResourceType
from korvet_fast.core.audit import LONGEST, QUEUE, AuditEntry, AuditFile, AuditLog, open_audit_log, write_line
from korvet_fast.endpoint import Endpoint
from korvet_fast.errors import SettingError

ENTRY = AuditEntry(
    "User:ann",
    "::ffff:10.0.0.7",
    Endpoint("kafka", "127.0.0.1", 9092),
    "Produce",
    False,
    Operation.WRITE,
    ResourceType.TOPIC,
    "orders",
)
LINE = {
    "time": "2023-11-14T22:13:20.123Z",
    "principal": "User:ann",
    "host": "10.0.0.7",
    "listener": "kafka://127.0.0.1:9092",
    "api": "Produce",
    "operation": "WRITE",
    "resourceType": "TOPIC",
    "resourceName": "orders",
    "patternType": "LITERAL",
    "result": "Denied",
}
HOSTILE = 'a\n{"result": "Allowed"}\r\u2028\x85\x00\x1b[31m\x7f"\\\ud800é'


def end(audit: AuditLog) -> None:
    """Close it, and wait for its thread however slow the machine is."""
    audit.close()
    for thread in threading.enumerate():
        if thread.name == "audit":
            thread.join()


def read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="ascii").splitlines()]


class Gate:
    """A disk that hangs until it is opened."""

    def __init__(self) -> None:
        self.open = threading.Event()
        self.reached = threading.Event()
        self.written = 0

    def append(self, lines: Sequence[bytes]) -> tuple[int, str]:
        self.reached.set()
        self.open.wait()
        self.written += len(lines)
        return len(lines), ""


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> Iterator[Gate]:
    made = Gate()
    monkeypatch.setattr(AuditFile, "append", lambda _, lines: made.append(lines))
    yield made
    made.open.set()


def test_a_line_has_who_did_what_to_which_resource() -> None:
    assert json.loads(write_line(1_700_000_000_123, ENTRY)) == LINE
    allowed = write_line(1_700_000_000_123, ENTRY._replace(allowed=True))
    assert json.loads(allowed) == LINE | {"result": "Allowed"}
    login = AuditEntry("User:bob", "10.0.0.7", "", "SaslAuthenticate", False, reason="a wrong password")
    assert json.loads(write_line(1_700_000_000_000, login)) == {
        "time": "2023-11-14T22:13:20.000Z",
        "principal": "User:bob",
        "host": "10.0.0.7",
        "listener": "",
        "api": "SaslAuthenticate",
        "operation": "AUTHENTICATE",
        "result": "Denied",
        "reason": "a wrong password",
    }


@pytest.mark.parametrize("field", ["principal", "host", "api", "name", "reason"])
def test_no_name_ends_a_line_or_reaches_a_terminal(field: str) -> None:
    line = write_line(0, ENTRY._replace(**{field: HOSTILE}))  # type: ignore[arg-type]
    assert line.endswith(b"}\n")
    assert all(0x20 <= byte < 0x7F for byte in line[:-1])
    told = json.loads(line)
    assert HOSTILE in told.values()
    assert told["result"] == "Denied"


def test_the_file_is_its_owners_and_is_appended_to(tmp_path: Path) -> None:
    path = tmp_path / "audit.log"
    for _ in range(2):  # a broker, and the same one after a restart
        audit = AuditLog(str(path), StillClock())
        audit.put(ENTRY)
        end(audit)
    assert read(path) == [json.loads(write_line(NOW, ENTRY))] * 2
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_file_that_was_moved_away_is_made_anew(tmp_path: Path) -> None:
    path = tmp_path / "audit.log"
    file = AuditFile(str(path))
    assert file.append([b"1\n"]) == (1, "")
    path.rename(tmp_path / "audit.log.1")
    assert file.append([b"2\n", b"3\n"]) == (2, "")
    path.unlink()
    assert file.append([b"4\n"]) == (1, "")
    path.rename(tmp_path / "audit.log.2")
    path.write_bytes(b"somebody made it")  # as logrotate's `create` does
    assert file.append([b"5\n"]) == (1, "")
    file.close()
    assert (tmp_path / "audit.log.1").read_bytes() == b"1\n"
    assert (tmp_path / "audit.log.2").read_bytes() == b"4\n"
    assert path.read_bytes() == b"somebody made it\n5\n"


def test_a_line_behind_a_torn_one_stands_alone(tmp_path: Path) -> None:
    path = tmp_path / "audit.log"
    path.write_bytes(b'{"time": "2023')
    file = AuditFile(str(path))
    assert file.append([b"1\n", b"2\n"]) == (2, "")
    assert file.append([b"3\n"]) == (1, "")
    file.close()
    assert path.read_bytes() == b'{"time": "2023\n1\n2\n3\n'


def test_a_full_disk_drops_lines_and_says_how_many(caplog: pytest.LogCaptureFixture) -> None:
    audit = AuditLog("/dev/full", StillClock())
    for _ in range(700):
        audit.put(ENTRY)
    end(audit)
    assert audit.dropped == 700
    lines = [record.getMessage() for record in caplog.records]
    assert sum(int(line.split()[0]) for line in lines) == 700
    assert len(lines) == 2  # the first, and the rest at the end: not one for each write
    assert all("were dropped: /dev/full: No space left on device" in line for line in lines)
    assert [record.levelno for record in caplog.records] == [logging.WARNING] * 2


def test_a_full_queue_drops_lines_and_nobody_waits(
    tmp_path: Path, gate: Gate, caplog: pytest.LogCaptureFixture
) -> None:
    audit = AuditLog(str(tmp_path / "audit.log"), StillClock())
    audit.put(ENTRY)
    gate.reached.wait()
    for number in range(QUEUE + 500):
        audit.put(ENTRY._replace(host=f"host-{number}"))  # it returns while the disk hangs
    assert audit.dropped == 500
    gate.open.set()
    end(audit)
    audit.put(ENTRY)  # the broker has ended
    assert audit.dropped == 501
    lines = [record.getMessage() for record in caplog.records]
    assert lines[0] == "1 lines of the audit log were dropped: more came than can be written"
    assert lines[1].startswith("499 lines ")


def test_a_client_that_is_denied_without_end_leaves_room_for_others(tmp_path: Path, gate: Gate) -> None:
    audit = AuditLog(str(tmp_path / "audit.log"), StillClock())
    audit.put(ENTRY)
    gate.reached.wait()
    for _ in range(2 * QUEUE):
        audit.put(ENTRY)
    dropped = audit.dropped
    assert dropped == 2 * QUEUE - QUEUE // 2
    for number in range(100):
        audit.put(ENTRY._replace(host=f"10.0.1.{number}"))
    assert audit.dropped == dropped
    gate.open.set()
    while gate.written < 1 + QUEUE // 2 + 100:
        time.sleep(0.001)
    audit.put(ENTRY)  # its lines are written, so it has room again
    assert audit.dropped == dropped
    end(audit)


def test_a_disk_that_hangs_does_not_keep_the_broker(tmp_path: Path, gate: Gate) -> None:
    audit = AuditLog(str(tmp_path / "audit.log"), StillClock())
    audit.put(ENTRY)
    gate.reached.wait()
    audit.close()
    assert not gate.open.is_set()


def test_names_hold_no_more_memory_than_those_of_acls(tmp_path: Path) -> None:
    path = tmp_path / "audit.log"
    audit = AuditLog(str(path), StillClock())
    audit.put(ENTRY._replace(name="n" * 32_000, reason="r" * LONGEST))
    end(audit)
    (line,) = read(path)
    assert line["resourceName"] == "n" * LONGEST + "…"
    assert line["reason"] == "r" * LONGEST


def test_a_name_that_somebody_claims_is_no_longer_than_others(tmp_path: Path) -> None:
    path = tmp_path / "audit.log"
    audit = AuditLog(str(path), StillClock())
    claim = ENTRY._replace(principal="User:" + "x" * 4000)
    audit.put(claim._replace(operation=None, resource=None, reason="a wrong name or password"))
    audit.put(claim)  # who is let in is told in full: it was an operator's choice
    end(audit)
    assert [line["principal"] for line in read(path)] == [claim.principal[:LONGEST] + "…", claim.principal]


def count_descriptors(path: Path) -> int:
    """Of this file, the one that was removed included: other threads open and close others meanwhile."""
    found = 0
    for descriptor in Path("/proc/self/fd").iterdir():
        with suppress(FileNotFoundError):
            found += str(descriptor.readlink()).startswith(str(path))
    return found


def test_a_file_that_cannot_be_read_leaves_no_descriptor_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "audit.log"
    file = AuditFile(str(path))
    path.unlink()
    path.write_bytes(b"a block of this one is bad\n")

    def fail(*_: int) -> bytes:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "pread", fail)
    before = count_descriptors(path)
    assert file.append([b"1\n"]) == (0, f"{path}: Input/output error")
    assert count_descriptors(path) == before
    file.close()


def test_a_file_that_cannot_be_written_is_no_setting(tmp_path: Path) -> None:
    assert open_audit_log(read_settings([]), StillClock()) is None
    (tmp_path / "directory").mkdir()
    for path, why in ((tmp_path / "missing" / "log", "No such file"), (tmp_path / "directory", "Is a directory")):
        with pytest.raises(SettingError, match=f"audit.log.file: {path}: {why}"):
            open_audit_log(read_settings([f"audit.log.file={path}"]), StillClock())


def test_a_pipe_that_nobody_reads_drops_lines(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    audit = AuditLog(str(path), StillClock())
    for _ in range(1000):
        audit.put(ENTRY)
    end(audit)
    assert 0 < audit.dropped < 1000
