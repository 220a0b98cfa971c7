"""The pages of docs/ that need no more than a broker, run as they stand: all their commands, in order."""

import re
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from documents import Reader, alone, examples, read_blocks
from redis_server import PROGRAMS, RedisServer, find_program
from requirement import require

PAGES = (
    "docs/durability.md",
    "docs/legacy.md",
    "docs/operations.md",
    "docs/producer.md",
    "docs/replication.md",
    "docs/security.md",
)
BROKER = {"docs/operations.md", "docs/producer.md"}  # pages that expect one to run
pytestmark = pytest.mark.timeout(1200)  # some may wait for others that have the ports


@pytest.fixture(autouse=True)
def alone_on_its_ports(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with alone(tmp_path_factory.getbasetemp().parent):
        yield


@pytest.mark.parametrize("page", PAGES)
def test_a_page_runs(page: str, tmp_path: Path) -> None:
    found = examples(page)
    assert found
    with Reader(tmp_path) as reader:
        if page in BROKER:
            reader.serve("korvet-fast serve")
        if page == "docs/durability.md":
            with RedisServer(find_program(PROGRAMS[0]), tmp_path / "redis", port=6379, appendonly="yes"):
                assert "D1" in reader.run(*found)
            return
        for block in found:
            if block.text.startswith("mkdir rescued"):
                set_aside(reader)
            reader.run(block)
        if page == "docs/replication.md":
            rescued = "korvet-fast consume orders --from earliest --count 1 --bootstrap 127.0.0.1:9095"
            assert "an order of before" in reader.shell(rescued)


def set_aside(reader: Reader) -> None:
    """A copy of `orders 0` with one record, as broker 3 leaves it when its topic is lost."""
    reader.serve("korvet-fast serve --store file:./before --listen kafka://127.0.0.1:9095")
    reader.shell("echo 'an order of before' | korvet-fast produce orders --bootstrap 127.0.0.1:9095")
    reader.stop("9095")
    reader.shell("mv before/orders-0 data-3/orders-0.0123456789abcdef-stray")


def test_text(tmp_path: Path) -> None:
    """docs/text.md: the session to type, line by line."""
    require("nc")
    (serve,) = examples("docs/text.md", "sh")
    (session,) = [block.text for block in read_blocks("docs/text.md") if block.language == "text"]
    exchanges = re.findall(r"^(V1\|.*)\n< (V1\|.*)$", session, re.MULTILINE)
    assert len(exchanges) == len(session.splitlines()) / 2
    with Reader(tmp_path) as reader:
        reader.run(serve)
        with socket.create_connection(("127.0.0.1", 9094), 30) as peer, peer.makefile("rw", encoding="utf-8") as lines:
            for typed, answer in exchanges:
                lines.write(typed + "\n")
                lines.flush()
                assert lines.readline() == answer + "\n"
