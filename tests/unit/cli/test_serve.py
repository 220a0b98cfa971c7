"""`korvet-fast serve` as a process: what it says, how it ends, what it refuses."""

import json
import logging
import os
import pty
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from broker_process import BrokerProcess
from korvet_fast.cli.log import Human, JsonLines
from redis_server import free_port

SERVE = [sys.executable, "-m", "korvet_fast", "serve"]


def refuse(*arguments: str) -> tuple[int, str]:
    """Exit code and complaint of a `serve` that must not start."""
    done = subprocess.run([*SERVE, *arguments], capture_output=True, text=True, timeout=120)
    return done.returncode, done.stderr


def test_it_says_that_it_is_ready_as_json_and_ends_well(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path / "data") as broker:
        ready = json.loads(broker.log[0])
        assert ready["message"] == f"ready kafka://{broker.bootstrap} store=file:{tmp_path / 'data'}"
        assert ready["level"] == "info"
        assert broker.stop() == 0
    # Nothing is left that another start would stumble over.
    with BrokerProcess(tmp_path / "data") as broker:
        assert broker.stop(signal.SIGINT) == 0


def test_it_serves_every_address_it_is_given(tmp_path: Path) -> None:
    listen = ["--listen", "kafka://127.0.0.1:0", "--listen", "kafka://localhost:0"]
    process = subprocess.Popen(
        [*SERVE, "--store", f"file:{tmp_path / 'data'}", *listen], stderr=subprocess.PIPE, text=True
    )
    assert process.stderr is not None
    with process, process.stderr as log:
        for _ in listen[::2]:
            address = json.loads(log.readline())["message"].split()[1].removeprefix("kafka://")
            host, port = address.rsplit(":", 1)
            socket.create_connection((host, int(port)), 120).close()
        process.terminate()
        assert process.wait(120) == 0


def test_a_person_at_a_terminal_reads_plain_lines(tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    listen = ["--listen", "kafka://127.0.0.1:0"]
    process = subprocess.Popen([*SERVE, "--store", f"file:{tmp_path / 'data'}", *listen], stderr=theirs)
    os.close(theirs)
    line = b""
    while not line.endswith(b"\n"):
        line += os.read(ours, 1000)
    process.terminate()
    assert process.wait(120) == 0
    os.close(ours)
    assert " info     ready kafka://127.0.0.1:" in line.decode()


@pytest.mark.parametrize("scheme", ["kafka", "http"])
def test_a_port_that_is_taken(tmp_path: Path, scheme: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        listen = ["--listen", "text://127.0.0.1:0", "--listen", f"{scheme}://127.0.0.1:{port}"]
        code, said = refuse("--store", f"file:{tmp_path}", *listen)
    assert code == 1
    assert f"cannot listen on 127.0.0.1:{port}: Address already in use" in said
    assert f"--listen {scheme}://HOST:PORT" in said
    assert "Traceback" not in said


def test_an_address_of_another_machine(tmp_path: Path) -> None:
    code, said = refuse("--store", f"file:{tmp_path}", "--listen", "kafka://192.0.2.1:9092")
    assert code == 1
    assert "cannot listen on 192.0.2.1:9092: Cannot assign requested address. Another address is chosen" in said
    assert "running there already" not in said


def test_a_store_that_is_in_use(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path / "data") as broker:
        code, said = refuse("--store", broker.store, "--listen", "kafka://127.0.0.1:0")
        assert code == 1
        assert f"is in use by the process {broker.pid}" in said
        assert "Traceback" not in said


def test_more_copies_than_files_are(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path / "data", "min.insync.replicas=3") as broker:
        assert broker.stop() == 0
        assert any(
            "min.insync.replicas=3, and files of our own are one copy. Set it to 1" in line for line in broker.log
        )


@pytest.mark.parametrize("inside", ["file", "file/deeper"])
def test_a_store_that_cannot_be_a_directory(tmp_path: Path, inside: str) -> None:
    (tmp_path / "file").write_text("")
    code, said = refuse("--store", f"file:{tmp_path / inside}", "--listen", "kafka://127.0.0.1:0")
    assert code == 1
    assert said.startswith("Error: ")
    assert "cannot be used: there is a file; name a directory" in said
    assert "Traceback" not in said


@pytest.mark.parametrize("workers", [(), ("--workers", "2")], ids=["one process", "workers"])
def test_a_directory_in_the_place_of_a_file_of_the_store(tmp_path: Path, workers: tuple[str, ...]) -> None:
    file = tmp_path / "data" / "groups.json"
    file.mkdir(parents=True)
    code, said = refuse("--store", f"file:{tmp_path / 'data'}", "--listen", "kafka://127.0.0.1:0", *workers)
    assert code == 1
    assert f"{file} cannot be opened: Is a directory; a file belongs there: move the directory away, and copy" in said
    assert "Traceback" not in said


def test_log_lines() -> None:
    record = logging.LogRecord("korvet_fast", logging.WARNING, "", 0, "%d closed\nearly", (3,), None)
    assert Human().format(record).endswith(r" warning  3 closed\nearly")
    line = JsonLines().format(record)
    assert "\n" not in line
    assert json.loads(line) == {
        "time": json.loads(line)["time"],
        "level": "warning",
        "logger": "korvet_fast",
        "message": "3 closed\nearly",
    }
    try:
        raise ValueError("boom")
    except ValueError:
        record.exc_info = sys.exc_info()
    assert "ValueError: boom" in json.loads(JsonLines().format(record))["traceback"]


def test_log_lines_of_a_worker_name_it() -> None:
    """All workers write to one standard error."""
    record = logging.LogRecord("korvet_fast", logging.ERROR, "", 0, "it ends", (), None)
    record.processName = "worker 2"
    assert Human().format(record).endswith(" error    worker 2: it ends")
    assert json.loads(JsonLines().format(record))["process"] == "worker 2"


def test_workers_say_what_they_cannot_do(tmp_path: Path) -> None:
    store = ["--store", f"file:{tmp_path / 'data'}", "--listen", "kafka://127.0.0.1:0"]
    for arguments, why in (
        (["--workers", "0"], "'0' is not a number from 1 to 256, and not auto"),
        (["--worker-ports", "9100"], "--worker-ports is for --workers 2 and more"),
        (["--workers", "2", "--worker-ports", "9100-"], "'9100-' should be ports such as 9100-9131"),
        (["--workers", "2", "--store", "redis://127.0.0.1"], "over Redis, start 2 brokers with the same --store"),
    ):
        code, complaint = refuse(*store, *arguments)
        assert code == 2, complaint
        assert why in complaint
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        code, complaint = refuse(*store, "--workers", "2", "--worker-ports", str(port))
        assert code == 1
        (line,) = [line for line in complaint.splitlines() if f"cannot listen on 127.0.0.1:{port}" in line]
        assert json.loads(line)["process"] == "worker 2"
        assert "It is worker 2's: other ports are chosen with --worker-ports FIRST-LAST" in line
    (tmp_path / "data" / "groups.json").write_text('{"g": {}}')
    code, complaint = refuse(*store, "--workers", "2")
    assert code == 1
    assert "has groups of the text protocol" in complaint


def test_auto_takes_ports_for_more_workers_than_there_are_cores(tmp_path: Path) -> None:
    """The same unit is for all machines; on one with one core no port is needed."""
    arguments = ("--workers", "auto", "--worker-ports", f"{free_port()}")
    core = ("taskset", "-c", f"{min(os.sched_getaffinity(0))}")
    with BrokerProcess(tmp_path / "data", before=core, arguments=arguments) as broker:
        assert len([line for line in broker.log if "ready kafka://" in line]) == 1
        assert broker.stop() == 0


def test_a_directory_has_one_broker_or_one_family_of_workers(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path / "data") as alone:
        code, complaint = refuse("--store", alone.store, "--listen", "kafka://127.0.0.1:0", "--workers", "2")
        assert (code, f"in use by the process {alone.pid}" in complaint) == (1, True)
    listen = ("--listen", "kafka://127.0.0.1:0")
    with BrokerProcess(tmp_path / "data", arguments=("--workers", "2", "--worker-ports", str(free_port()))) as family:
        for arguments in ((), ("--workers", "2")):
            code, complaint = refuse("--store", family.store, *listen, *arguments)
            assert (code, f"in use by the process {family.pid}" in complaint) == (1, True)
        assert family.stop() == 0
