"""Doctor's findings; the machine it would take is given as text or numbers."""

import asyncio
import errno
import os
import pwd
import resource
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from broker_process import BrokerProcess
from korvet_fast.cli import root
from korvet_fast.cli.doctor import promise
from korvet_fast.cli.doctor.finding import Finding, Verdict
from korvet_fast.cli.doctor.network import examine_address, examine_descriptors
from korvet_fast.cli.doctor.redis import judge_server
from korvet_fast.cli.doctor.store import (
    Mount,
    examine_store,
    find_mount,
    judge_copies,
    judge_flushes,
    judge_mount,
    judge_space,
)
from korvet_fast.endpoint import Endpoint
from korvet_fast.store.embedded.lock import Lock
from korvet_fast.store.embedded.unreadable import explain
from korvet_fast.store.redis.connection.url import RedisAddress
from korvet_fast.store.redis.durability.durability import Server
from redis_server import RedisServer
from requirement import require

MOUNTS = """\
22 27 0:21 / /proc rw,relatime - proc proc rw
27 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
30 27 0:25 / /data rw,nosuid - xfs /dev/sdb rw,nobarrier
31 27 0:26 / /with\\040blank rw - nfs4 server:/x rw
32 30 0:27 / /data rw - tmpfs none rw
"""


@pytest.fixture
def taken() -> Iterator[Endpoint]:
    """An address where something listens that never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield Endpoint("kafka", "127.0.0.1", server.getsockname()[1])


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


def test_space_on_a_small_disk() -> None:
    assert judge_space(3 << 20, 40 << 20).sentence.startswith("3.0 MiB of 40.0 MiB are free")


def test_a_directory_on_a_disk_mounted_for_reading(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(lock: Lock) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr(Lock, "check", refuse)
    finding = examine_store(tmp_path).findings[0]
    assert finding.sentence == f"cannot lock {tmp_path}: Read-only file system. Mount it for writing."


def test_a_directory_that_we_may_not_look_into(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> os.stat_result:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), "data")

    looked_at, stat = tmp_path / "data", os.stat
    monkeypatch.setattr(os, "stat", lambda path, **how: (refuse if looked_at.name in str(path) else stat)(path, **how))
    assert "does not exist yet" in examine_store(looked_at).findings[0].sentence


def test_a_store_to_be_is_looked_at_without_making_it(tmp_path: Path) -> None:
    directory = tmp_path / "deep" / "data"
    ground = examine_store(directory)
    assert "does not exist yet" in ground.findings[0].sentence
    assert list(tmp_path.iterdir()) == []


def test_a_store_at_rest_and_one_in_use(tmp_path: Path) -> None:
    assert "holds no store yet" in examine_store(tmp_path).findings[0].sentence
    lock = Lock(tmp_path)
    lock.take()
    used = examine_store(tmp_path).findings[0].sentence
    assert used.startswith(f"a broker is running: {tmp_path} is in use by the process {os.getpid()}; another")
    assert examine_store(tmp_path).cluster_id is None  # it has not written its id yet
    (tmp_path / ".lock").unlink()
    deleted = examine_store(tmp_path).findings[0].sentence
    assert deleted.startswith(f"a broker is running: {tmp_path} is in use by a process that .lock does not name;")
    assert not (tmp_path / ".lock").exists(), "doctor changes nothing"
    lock.release()
    assert "holds no store yet" in examine_store(tmp_path).findings[0].sentence
    lock.take()
    lock.release()
    assert examine_store(tmp_path).cluster_id == ""
    assert "no broker uses it now" in examine_store(tmp_path).findings[0].sentence


def test_more_copies_than_files_are() -> None:
    assert list(judge_copies(1)) == []
    (finding,) = judge_copies(2)
    assert finding.verdict is Verdict.BAD
    assert "min.insync.replicas=2, and files of our own are one copy. Set it to 1" in finding.sentence


def test_a_file_is_no_store(tmp_path: Path) -> None:
    file = tmp_path / "data"
    file.write_text("")
    result = CliRunner().invoke(root, ["doctor", "--store", f"file:{file}", "--listen", "kafka://127.0.0.1:0"])
    assert result.exit_code == 1
    assert "is a file; name a directory" in result.output

    assert result.output.count(str(file)) == 1, "the fault is told once"


@pytest.fixture
def stored(tmp_path: Path) -> Path:
    """A store with a topic, and with the files of text groups, that no broker has."""
    with BrokerProcess(tmp_path / "d") as broker:
        made = CliRunner().invoke(root, ["topic", "create", "t", "--bootstrap", broker.bootstrap])
        assert made.exit_code == 0, made.output
        lines = tmp_path / "lines"
        lines.write_text("one\n")
        sent = CliRunner().invoke(root, ["produce", "t", str(lines), "--bootstrap", broker.bootstrap])
        assert sent.exit_code == 0, sent.output
    for name in ("groups.json", "offsets.json"):
        (tmp_path / "d" / name).write_text("{}")
    return tmp_path / "d"


_SEGMENT = "00000000000000000000.log"


@pytest.mark.parametrize("name", [f"t-0/{_SEGMENT}", f"@registry/{_SEGMENT}", "groups.json", "offsets.json"])
def test_a_directory_in_the_place_of_a_file(stored: Path, name: str) -> None:
    assert "files" not in [finding.subject for finding in examine_store(stored).findings]
    file = stored / name
    file.unlink()
    file.mkdir()
    (found,) = [finding for finding in examine_store(stored).findings if finding.verdict is Verdict.BAD]
    advice = "a file belongs there: move the directory away, and copy the file back"
    assert found == Finding(Verdict.BAD, "files", f"{file} cannot be opened: Is a directory; {advice}")


def test_a_file_in_the_place_of_the_registry(stored: Path) -> None:
    shutil.rmtree(stored / "@registry")
    (stored / "@registry").write_text("")
    (found,) = [finding for finding in examine_store(stored).findings if finding.verdict is Verdict.BAD]
    assert found.sentence.startswith(f"{stored}/@registry cannot be opened: Not a directory; a directory belongs")


# Root without the two capabilities by which modes do not bind root.
BOUND = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"] if os.geteuid() == 0 else []


@pytest.mark.parametrize(
    ("closed", "others"),
    [
        (["groups.json"], ""),
        ([".lock"], ""),
        ([f"@registry/{_SEGMENT}"], ""),
        (["t-0"], ""),
        ([f"@registry/{_SEGMENT}", f"t-0/{_SEGMENT}"], " (1 more cannot be opened)"),
        (["."], ""),
    ],
)
def test_files_that_this_user_may_not_open_are_named_by_doctor_and_serve(
    stored: Path, closed: list[str], others: str
) -> None:
    require("setpriv")
    places = [stored / name for name in closed]
    modes = [place.stat().st_mode for place in places]
    (stored / "checkpoint").unlink()  # as after a crash: a start opens everything
    options = ["--store", f"file:{stored}", "--listen", "kafka://127.0.0.1:0"]
    try:
        for place in places:
            place.chmod(0)
        told = [
            subprocess.run(
                [*BOUND, sys.executable, "-m", "korvet_fast", command, *options],
                capture_output=True,
                text=True,
                timeout=200,
            )
            for command in ("doctor", "serve")
        ]
    finally:
        for place, mode in zip(places, modes, strict=True):
            place.chmod(mode)
    doctor, serve = told
    sentence = f"{places[0]} cannot be opened: Permission denied; give its owner, this user, the right: `chmod u+rwX"
    assert (doctor.returncode, serve.returncode) == (1, 1)
    assert f" {sentence} {places[0]}`{others}\n" in doctor.stdout
    assert doctor.stdout.count("Permission denied") == 1, "the fault is told once"
    assert "Permission denied; give its owner, this user, the right: `chmod u+rwX" in serve.stderr
    assert any(str(place) in serve.stderr for place in places)
    assert "Traceback" not in serve.stderr


def test_a_file_of_another_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "groups.json"
    file.write_text("{}")
    monkeypatch.setattr(os, "geteuid", lambda: 4_000_000)
    owner = pwd.getpwuid(file.stat().st_uid).pw_name
    said = explain(PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(file)), tmp_path)
    assert said == (
        f"{file} cannot be opened: Permission denied; it belongs to {owner}: run this as {owner}, or have root do "
        f"`chown -R 4000000 {tmp_path}`"
    )


def test_an_address_that_is_free_or_taken_or_not_here(taken: Endpoint) -> None:
    (free, local) = asyncio.run(examine_address(Endpoint("kafka", "127.0.0.1", 0), None))
    assert (free.verdict, local.verdict) == (Verdict.GOOD, Verdict.GOOD)
    (finding,) = asyncio.run(examine_address(Endpoint("kafka", "192.0.2.1", 9092), None))
    assert finding.verdict is Verdict.BAD
    assert "cannot be listened on" in finding.sentence


def test_an_address_taken_by_something_else(taken: Endpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("korvet_fast.cli.doctor.network.PATIENCE", 0.05)
    (finding,) = asyncio.run(examine_address(taken, None))
    assert finding.verdict is Verdict.BAD
    assert "is taken, and no broker answers there" in finding.sentence


@pytest.mark.parametrize("scheme", ["http", "text", "legacy", "replica", "kafka+tls"])
def test_taken_addresses_where_no_kafka_is_spoken(taken: Endpoint, scheme: str) -> None:
    """Beside a broker that runs they are its own: doctor takes the options of `serve`."""
    listener = taken._replace(scheme=scheme)
    for cluster_id in ("wcTmcGyXQ2e5oXeJz3Hk1A", None):
        (finding,) = asyncio.run(examine_address(listener, None, cluster_id))
        assert finding.verdict is Verdict.WARN
        assert finding.sentence.startswith(f"{listener} is taken, by the broker that runs or by another program")
    (finding,) = asyncio.run(examine_address(listener, None, ""))
    assert (finding.verdict, finding.sentence) == (
        Verdict.BAD,
        f"{listener} is taken, and no broker over this store is ready. Choose another port, or wait.",
    )


def test_a_redis_that_may_evict_promises_nothing(start_redis: Callable[..., RedisServer]) -> None:
    server = start_redis(maxmemory_policy="allkeys-lru")
    result = CliRunner().invoke(root, ["doctor", "--store", server.url, "--listen", "kafka://127.0.0.1:0"])
    assert result.exit_code == 1
    assert "cannot keep records: its maxmemory-policy is allkeys-lru" in result.output
    assert "acks=all survives" not in result.output


def test_what_clients_are_told() -> None:
    anywhere = Endpoint("kafka", "0.0.0.0", 0)
    findings = asyncio.run(examine_address(anywhere, Endpoint("kafka", "127.0.0.1", 9092)))
    assert verdicts(findings) == [Verdict.GOOD, Verdict.WARN, Verdict.GOOD]
    findings = asyncio.run(examine_address(anywhere, Endpoint("kafka", "nobody.invalid", 9092)))
    assert verdicts(findings) == [Verdict.GOOD, Verdict.BAD]


@pytest.mark.parametrize(
    ("hard", "connections", "verdict"),
    [
        (13_482, 10_000, Verdict.GOOD),
        (13_481, 10_000, Verdict.WARN),  # `serve` would have one connection less
        (2000, 1 << 40, Verdict.WARN),
        (resource.RLIM_INFINITY, 1 << 40, Verdict.GOOD),
    ],
)
def test_file_descriptors(monkeypatch: pytest.MonkeyPatch, hard: int, connections: int, verdict: Verdict) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (100, hard))  # the soft limit is raised when the broker starts
    assert examine_descriptors(connections).verdict is verdict


def test_brokers_that_copy_each_other_may_ask_for_copies(tmp_path: Path) -> None:
    settings = ["min.insync.replicas=2", "replication.peers=1@127.0.0.1:9192,2@127.0.0.1:9292,3@127.0.0.1:9392"]
    sets = [argument for setting in settings for argument in ("--set", setting)]
    arguments = ["doctor", "--store", f"file:{tmp_path}", "--listen", "kafka://127.0.0.1:0", *sets]
    said = CliRunner().invoke(root, arguments).output
    assert "files of our own are one copy" not in said
    assert "the only copy" not in said


def test_the_promise_in_words() -> None:
    assert "the only copy" in promise("fsync", kept=True)[4]
    assert "survive the loss of a disk" in promise("fsync", kept=True, peers=True)[4]
    assert "a power failure too" in promise("fsync", kept=True)[3]
    assert "but not of the machine" in promise("fsync", kept=False)[3]
    assert "not a power failure" in promise("written", kept=True)[3]


@pytest.mark.parametrize(
    ("number", "advice"),
    [
        (errno.ENOSPC, "Make room there."),
        (errno.EROFS, "Mount it for writing."),
        (errno.EIO, "See the kernel's log: the disk fails."),
        (errno.EACCES, "Let this user write there."),
    ],
)
def test_a_directory_that_takes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, advice: str
) -> None:
    def refuse(_: Path) -> float:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr("korvet_fast.cli.doctor.store.time_flushes", refuse)
    (found,) = [finding for finding in examine_store(tmp_path).findings if "cannot write" in finding.sentence]
    assert found.sentence == f"cannot write in {tmp_path}: {os.strerror(number)}. {advice}"


@pytest.mark.parametrize(
    ("used", "verdict", "words"),
    [
        (900, Verdict.GOOD, "(maxmemory)"),
        (901, Verdict.WARN, "when it is full, appends fail"),
        (999, Verdict.WARN, "when it is full, appends fail"),
        (1000, Verdict.BAD, "appends fail. Raise maxmemory"),
    ],
)
def test_the_memory_of_a_redis(used: int, verdict: Verdict, words: str) -> None:
    server = Server("redis", (7, 2, 4), True, "always", False, "noeviction", 0, 0, "", used, 1000)
    (found,) = [
        finding
        for finding in judge_server(RedisAddress("127.0.0.1", 6379), server, sync=False, copies=1)
        if finding.subject == "memory"
    ]
    assert found.verdict is verdict
    assert words in found.sentence
