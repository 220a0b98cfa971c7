"""What doctor makes of what it finds; the machine it would take is given as text or numbers."""

import asyncio
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from korvet_fast.cli import root
from korvet_fast.cli.address import Listener
from korvet_fast.cli.doctor import promise
from korvet_fast.cli.doctor.finding import Finding, Verdict
from korvet_fast.cli.doctor.network import examine_address, examine_descriptors
from korvet_fast.cli.doctor.store import Mount, examine_store, find_mount, judge_flushes, judge_mount, judge_space
from korvet_fast.store.embedded.lock import Lock

MOUNTS = """\
22 27 0:21 / /proc rw,relatime - proc proc rw
27 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
30 27 0:25 / /data rw,nosuid - xfs /dev/sdb rw,nobarrier
31 27 0:26 / /with\\040blank rw - nfs4 server:/x rw
32 30 0:27 / /data rw - tmpfs none rw
"""


@pytest.fixture
def taken() -> Iterator[Listener]:
    """An address where something listens that never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield Listener("kafka", "127.0.0.1", server.getsockname()[1])


def verdicts(findings: list[Finding]) -> list[Verdict]:
    return [finding.verdict for finding in findings]


@pytest.mark.parametrize(
    ("path", "kind", "point"),
    [
        ("/home", "ext4", "/"),
        ("/data/korvet", "tmpfs", "/data"),  # mounted over the xfs
        ("/database", "ext4", "/"),
        ("/with blank/x", "nfs4", "/with blank"),
    ],
)
def test_the_mount_a_path_lies_on(path: str, kind: str, point: str) -> None:
    mount = find_mount(Path(path), MOUNTS)
    assert (mount.kind, mount.point) == (kind, point)


@pytest.mark.parametrize(
    ("kind", "options", "verdict", "words"),
    [
        ("ext4", {"rw"}, Verdict.GOOD, "ext4"),
        ("xfs", {"rw", "nobarrier"}, Verdict.WARN, "without barriers"),
        ("tmpfs", {"rw"}, Verdict.BAD, "nothing survives a restart"),
        ("overlay", {"rw"}, Verdict.WARN, "gone with the container"),
        ("nfs4", {"rw"}, Verdict.WARN, "another machine"),
    ],
)
def test_file_systems(kind: str, options: set[str], verdict: Verdict, words: str) -> None:
    finding = judge_mount(Mount(kind, "/data", frozenset(options)))
    assert finding.verdict is verdict
    assert words in finding.sentence


def test_flushes() -> None:
    disk, memory = Mount("ext4", "/", frozenset()), Mount("tmpfs", "/", frozenset())
    assert judge_flushes(0.002, disk).verdict is Verdict.GOOD
    assert "faster than a disk can" in judge_flushes(5e-6, disk).sentence
    assert "no disk below" in judge_flushes(1e-6, memory).sentence


@pytest.mark.parametrize(
    ("free", "verdict"), [(1 << 20, Verdict.BAD), (1 << 29, Verdict.WARN), (100 << 30, Verdict.GOOD)]
)
def test_space(free: int, verdict: Verdict) -> None:
    assert judge_space(free, 200 << 30).verdict is verdict


def test_a_store_to_be_is_looked_at_without_making_it(tmp_path: Path) -> None:
    directory = tmp_path / "deep" / "data"
    ground = examine_store(directory)
    assert "does not exist yet" in ground.findings[0].sentence
    assert list(tmp_path.iterdir()) == []


def test_a_store_at_rest_and_one_in_use(tmp_path: Path) -> None:
    assert "holds no store yet" in examine_store(tmp_path).findings[0].sentence
    lock = Lock(tmp_path)
    lock.take()
    assert "a broker is running" in examine_store(tmp_path).findings[0].sentence
    lock.release()
    assert "no broker uses it now" in examine_store(tmp_path).findings[0].sentence


def test_a_file_is_no_store(tmp_path: Path) -> None:
    file = tmp_path / "data"
    file.write_text("")
    result = CliRunner().invoke(root, ["doctor", "--store", f"file:{file}", "--listen", "kafka://127.0.0.1:0"])
    assert result.exit_code == 1
    assert "is a file; name a directory" in result.output


def test_an_address_that_is_free_or_taken_or_not_here(taken: Listener) -> None:
    (free, local) = asyncio.run(examine_address(Listener("kafka", "127.0.0.1", 0), None))
    assert (free.verdict, local.verdict) == (Verdict.GOOD, Verdict.GOOD)
    (finding,) = asyncio.run(examine_address(Listener("kafka", "192.0.2.1", 9092), None))
    assert finding.verdict is Verdict.BAD
    assert "cannot be listened on" in finding.sentence


def test_an_address_taken_by_something_else(taken: Listener, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("korvet_fast.cli.doctor.network.PATIENCE", 0.05)
    (finding,) = asyncio.run(examine_address(taken, None))
    assert finding.verdict is Verdict.BAD
    assert "taken by a program that is no broker" in finding.sentence


def test_what_clients_are_told() -> None:
    anywhere = Listener("kafka", "0.0.0.0", 0)
    findings = asyncio.run(examine_address(anywhere, Listener("kafka", "127.0.0.1", 9092)))
    assert verdicts(findings) == [Verdict.GOOD, Verdict.WARN, Verdict.GOOD]
    findings = asyncio.run(examine_address(anywhere, Listener("kafka", "nobody.invalid", 9092)))
    assert verdicts(findings) == [Verdict.GOOD, Verdict.BAD]


def test_file_descriptors() -> None:
    assert examine_descriptors(10).verdict is Verdict.GOOD
    assert examine_descriptors(1 << 40).verdict in (Verdict.WARN, Verdict.GOOD)  # GOOD where there is no limit


def test_the_promise_in_words() -> None:
    assert "a power failure too" in promise("fsync", kept=True)[3]
    assert "but not of the machine" in promise("fsync", kept=False)[3]
    assert "not a power failure" in promise("written", kept=True)[3]
