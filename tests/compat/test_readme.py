"""The README's sections `Quick start` and `Over Redis`, run as they stand: same commands, same ports, same Python."""

import fcntl
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from redis_server import PROGRAMS, RedisServer, find_program
from requirement import missing, require

README = (Path(__file__).parents[2] / "README.md").read_text()


def blocks(section: str, language: str) -> list[str]:
    text = README.split(f"## {section}\n")[1].split("\n## ")[0]
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)


@pytest.fixture(autouse=True)
def alone_on_its_ports(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Where tests run side by side, only one of these at a time."""
    with (tmp_path_factory.getbasetemp().parent / "readme.lock").open("w") as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)
        yield


@pytest.fixture(scope="module")
def environment() -> dict[str, str]:
    """Finds `korvet-fast` where this Python has it installed."""
    return {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}


@contextmanager
def serving(command: str, port: int, directory: Path, environment: dict[str, str]) -> Iterator[None]:
    """A `korvet-fast serve` of the README, in a directory of its own; it must end well."""
    with subprocess.Popen(
        command.split(), cwd=directory, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        assert process.stdout is not None
        try:
            said = []
            for line in process.stdout:
                said.append(line)
                if f"ready kafka://127.0.0.1:{port}" in line:
                    break
            else:
                pytest.fail("the broker did not say it was ready:\n" + "".join(said))
            yield
        finally:
            process.send_signal(signal.SIGTERM)
            code = process.wait(120)
        assert code == 0


def shell(text: str, directory: Path, environment: dict[str, str]) -> str:
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", text], cwd=directory, env=environment, capture_output=True, timeout=120
    )
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode()


def test_quick_start(tmp_path: Path, environment: dict[str, str]) -> None:
    require("kcat")
    start, command_line, kcat = blocks("Quick start", "sh")
    install, serve = start.splitlines()
    assert install == "pip install korvet-fast"
    with serving(serve, 9092, tmp_path, environment):
        assert "order-123 1 widget" in shell(command_line, tmp_path, environment)
        printed = []
        for example in blocks("Quick start", "python"):
            script = tmp_path / "example.py"
            script.write_text(example)
            printed.append(shell(f"{sys.executable} {script}", tmp_path, environment))
        foreign, own = printed
        assert "stored at offset" in foreign
        assert "b'order-124' b'3 gadgets'" in foreign
        assert "stored at offset" in own
        assert "a sprocket" in shell(kcat, tmp_path, environment)
        assert (tmp_path / "korvet-data").is_dir()


@pytest.fixture
def redis_on_its_port(tmp_path: Path) -> Iterator[None]:
    """A Redis where the README has it; never somebody else's."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", 6379))
        except OSError:
            missing("port 6379 is taken")
    with RedisServer(find_program(PROGRAMS[0]), tmp_path / "redis", port=6379, appendonly="yes"):
        yield


def words(printed: str) -> list[str]:
    """The text without the times in it, which differ."""
    return re.sub(r"\b[0-9]{13}\b", "TIME", printed).splitlines()


@pytest.mark.usefixtures("redis_on_its_port")
def test_over_redis(tmp_path: Path, environment: dict[str, str]) -> None:
    require("kcat")
    require("redis-cli")
    serve, produce, add, group, create, another, limit, serve_limited = blocks("Over Redis", "sh")
    (shown,) = blocks("Over Redis", "text")
    with serving(serve, 9092, tmp_path, environment):
        printed = shell(produce, tmp_path, environment)  # not on a terminal: without numbers and quotes
        assert words(printed) == words("\n".join(re.findall(r'"(.*)"', shown)))
        added, *consumed = shell(add, tmp_path, environment).splitlines()
        ids = [printed.splitlines()[0], added]
        offsets = [(int(ms) << 10) + int(sequence) for ms, sequence in (entry.split("-") for entry in ids)]
        assert consumed == [
            f"{offsets[0]} order-123 1 widget source=web",
            f"{offsets[1]} order-124 3 gadgets source=shell",
        ]
        seen = shell(group, tmp_path, environment).split()
        assert seen[seen.index("name") + 1] == "billing"
        assert seen[seen.index("last-delivered-id") + 1] == added
        assert seen[seen.index("lag") + 1] == "0"
        shell(create, tmp_path, environment)
        with serving(another, 9093, tmp_path, environment):
            assert "clicks" in shell("korvet-fast topic list --bootstrap 127.0.0.1:9093", tmp_path, environment)
    shell(limit, tmp_path, environment)
    with serving(serve_limited, 9092, tmp_path, environment):
        shell(produce, tmp_path, environment)
        assert len(shell(add, tmp_path, environment).splitlines()) == 1 + 4  # those of before, and the same once more
        assert "billing" in shell(group, tmp_path, environment)
        for topic in ("orders", "clicks"):
            shell(f"echo 1 | korvet-fast produce {topic}; korvet-fast topic delete {topic}", tmp_path, environment)
    assert shell("redis-cli ACL LOG", tmp_path, environment).strip() == ""
