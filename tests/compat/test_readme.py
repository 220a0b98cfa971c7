"""README, docs/getting-started.md and docs/redis.md, run as they stand: same commands, same ports, same Python."""

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from documents import ROOT, Reader, alone, examples, read_blocks, without_times
from redis_server import PROGRAMS, RedisServer, find_program
from requirement import missing, require

MOST = 9_000  # bytes of the README
pytestmark = pytest.mark.timeout(1200)  # some may wait for others that have the ports


@pytest.fixture(autouse=True)
def alone_on_its_ports(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with alone(tmp_path_factory.getbasetemp().parent):
        yield


@pytest.fixture
def redis_on_its_port(tmp_path: Path) -> Iterator[None]:
    """A Redis where the pages have it; never somebody else's."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", 6379))
        except OSError:
            missing("port 6379 is taken")
    with RedisServer(find_program(PROGRAMS[0]), tmp_path / "redis", port=6379, appendonly="yes"):
        yield


def test_the_readme_is_one_page() -> None:
    readme = (ROOT / "README.md").read_bytes()
    assert len(readme) <= MOST
    assert b"\nmake demo " in readme
    assert b"\nmake test " in readme


def test_the_readme_says_at_once_how_many_copies_there_are_and_where_it_runs() -> None:
    screen, _, rest = (ROOT / "README.md").read_text().partition("## Install")
    for words in ("**It keeps one copy** of a record, unless", "**It is not** Kafka:", "It runs on Linux with Python"):
        assert words in screen
    assert "on no package index yet" in rest
    assert "glibc 2.34 or newer" in rest


@pytest.mark.usefixtures("redis_on_its_port")
def test_readme(tmp_path: Path) -> None:
    """All blocks of README.md, but that of Spark: tests/compat/spark/test_readme.py runs it."""
    require("redis-cli")
    require("nc")
    (transcript,) = examples("README.md", "console")
    serve, stream, lines = examples("README.md", "sh")
    foreign, own, fixture, _spark = examples("README.md", "python")
    with Reader(tmp_path) as reader:
        reader.run(transcript)
        assert (tmp_path / "korvet-data").is_dir()
        printed = reader.run(foreign).splitlines()
        assert printed == ["stored at offset 1", "0 b'order-1' b'1 widget'", "1 b'order-2' b'3 gadgets'"]
        assert reader.run(own) == "stored at offset 2\n"
        assert "1 passed" in reader.run(fixture)
        reader.run(serve)
        reader.run(stream)
        answer, *values = reader.run(lines).splitlines()
        assert answer.startswith("V1|1|OK|partition=0 offset=3 ")
        assert values == ["1 widget", "3 gadgets", "5 springs", "9 nuts"]


def test_getting_started(tmp_path: Path) -> None:
    require("kcat")
    serve, command_line, kcat, settings = examples("docs/getting-started.md", "sh")
    foreign, own = examples("docs/getting-started.md", "python")
    with Reader(tmp_path) as reader:
        reader.run(serve)
        assert "order-1: 1 widget" in reader.run(command_line)
        printed = reader.run(foreign)
        assert "stored at offset" in printed
        assert "b'order-124' b'3 gadgets'" in printed
        assert "stored at offset" in reader.run(own)
        assert "a sprocket" in reader.run(kcat)
        assert (tmp_path / "korvet-data").is_dir()
        reader.run(settings)
        assert (tmp_path / "data").is_dir()
        assert (tmp_path / "other-data").is_dir()


@pytest.mark.usefixtures("redis_on_its_port")
def test_over_redis(tmp_path: Path) -> None:
    """docs/redis.md."""
    require("kcat")
    require("redis-cli")
    serve, produce, add, group, create, another, limit, serve_limited = examples("docs/redis.md")
    (shown,) = [block.text for block in read_blocks("docs/redis.md") if block.language == "text"]
    plain = produce._replace(printed=None)  # not on a terminal: redis-cli prints without numbers and quotes
    quoted = "\n".join(line.partition('"')[2].rstrip('"') for line in shown.splitlines())
    with Reader(tmp_path) as reader:
        reader.run(serve)
        printed = reader.run(plain)
        assert without_times(printed) == without_times(quoted)
        added, *consumed = reader.run(add).splitlines()
        ids = [printed.splitlines()[0], added]
        offsets = [(int(ms) << 10) + int(sequence) for ms, sequence in (entry.split("-") for entry in ids)]
        records = [line for line in consumed if not line.startswith("%")]  # kcat tells of the end
        assert records == [
            f"{offsets[0]} order-123 1 widget source=web",
            f"{offsets[1]} order-124 3 gadgets source=shell",
        ]
        seen = reader.run(group).split()
        assert seen[seen.index("name") + 1] == "billing"
        assert seen[seen.index("last-delivered-id") + 1] == added
        assert seen[seen.index("lag") + 1] == "0"
        reader.run(create)
        reader.run(another)
        assert "clicks" in reader.shell("korvet-fast topic list --bootstrap 127.0.0.1:9093")
        reader.stop("9093")
        reader.run(limit)
        reader.run(serve_limited)
        reader.run(plain)
        again = [line for line in reader.run(add).splitlines() if not line.startswith("%")]
        assert len(again) == 1 + 4  # those of before, and the same once more
        assert "billing" in reader.run(group)
        for topic in ("orders", "clicks"):
            reader.shell(f"echo 1 | korvet-fast produce {topic}; korvet-fast topic delete {topic}")
    assert reader.shell("redis-cli ACL LOG").strip() == ""
