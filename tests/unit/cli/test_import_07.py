"""`import-07` and `export-07`: directories written byte by byte, and what a broker then serves of them."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis
from click.testing import CliRunner
from confluent_kafka import Consumer, TopicPartition

from broker_process import BrokerProcess
from korvet_fast.cli import root
from korvet_reference import compression
from korvet_reference.legacy_client import EARLIEST, LegacyClient, encode_message
from redis_server import RedisServer, find_program, free_port

HELLO = bytes.fromhex("0000000b01003610a68668656c6c6f")
WORLD = bytes.fromhex("0000000b01003a771143776f726c64")
OLD = bytes.fromhex("0000000a003610a68668656c6c6f")
FAR = 5 << 31  # a position that 0.7 reaches when it has deleted 10 GiB
KEEP = ("log.retention.ms=-1",)


@pytest.fixture(params=["files", "redis"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param == "files":
        yield f"file:{tmp_path / 'data'}"
    else:
        with RedisServer(find_program("redis-server"), tmp_path / "redis") as server:
            yield server.url


def lay(folder: Path, *segments: tuple[int, bytes], changed: int = 1_350_000_000) -> None:
    """A partition's directory; file `n` was last changed `n` seconds after `changed`."""
    folder.mkdir(parents=True)
    for number, (base, data) in enumerate(segments):
        file = folder / f"{base:020d}.kafka"
        file.write_bytes(data)
        os.utime(file, (changed + number, changed + number))


def call(*arguments: str, code: int = 0) -> str:
    result = CliRunner().invoke(root, arguments)
    assert result.exit_code == code, result.output
    return result.output


class Served:
    """A broker over a store, with both doors."""

    def __init__(self, store: str) -> None:
        self.port = free_port()
        legacy = ("--listen", f"legacy://127.0.0.1:{self.port}")
        self.process = BrokerProcess(Path("unused"), *KEEP, store=store, arguments=legacy)

    def __enter__(self) -> "Served":
        self.process.start()
        return self

    def __exit__(self, *given: object) -> None:
        self.process.__exit__(*given)

    def client(self) -> LegacyClient:
        return LegacyClient("127.0.0.1", self.port)


def test_positions_are_those_of_the_files(store: str, tmp_path: Path) -> None:
    wrapper = encode_message(compression.compress(1, HELLO + WORLD), 1)
    first, second, third = HELLO + OLD, wrapper + WORLD, HELLO * 3
    ends = [FAR + len(first), FAR + len(first + second), FAR + len(first + second + third)]
    segments = (FAR, first), (ends[0], second), (ends[1], third)
    lay(tmp_path / "old" / "my-topic-1", *segments)
    lay(tmp_path / "old" / "my-topic-3", (0, HELLO))
    output = call("import-07", str(tmp_path / "old"), "--store", store)
    assert "2 partitions" in output
    assert "older than log.retention.ms" in output
    with Served(store) as served, served.client() as client:
        assert client.offsets("my-topic", 1, most=10) == [ends[2], ends[1], ends[0], FAR]
        assert client.offsets("my-topic", 1, EARLIEST) == [FAR]
        assert client.offsets("my-topic", 1, 1_350_000_001_000, 10) == [ends[0], FAR]
        for base, data in segments:
            assert client.fetch("my-topic", 1, base) == data
            assert client.fetch("my-topic", 1, base + 7) == data[7:]
        assert client.offsets("my-topic", 3, most=10) == [15, 0]
        assert client.offsets("my-topic", 2, most=10) == [0]
        client.produce("my-topic", 1, WORLD)
        assert client.fetch("my-topic", 1, ends[2]) == WORLD
        consumer = Consumer({"bootstrap.servers": served.process.bootstrap, "group.id": "g"})
        consumer.assign([TopicPartition("my-topic", 1, FAR)])
        found = [(message.offset(), message.value()) for message in consumer.consume(8, 60)]
        consumer.close()
    assert found[:5] == [
        (FAR, b"hello"),
        (FAR + 15, b"hello"),
        (ends[0], b"hello"),
        (ends[0] + 1, b"world"),
        (ends[0] + len(wrapper), b"world"),
    ]
    call("export-07", str(tmp_path / "new"), "--store", store)
    written = sorted((tmp_path / "new" / "my-topic-1").iterdir())
    assert written[0].name == f"{FAR:020d}.kafka"
    assert b"".join(file.read_bytes() for file in written) == first + second + third + WORLD
    assert {folder.name for folder in (tmp_path / "new").iterdir()} == {"my-topic-1", "my-topic-3"}


def test_a_torn_tail_is_cut_with_a_message_and_a_second_run_goes_on(store: str, tmp_path: Path) -> None:
    lay(tmp_path / "old" / "t-0", (30, HELLO + WORLD + b"straybyt"))
    output = call("import-07", str(tmp_path / "old"), "--store", store)
    assert "t-0: the last 8 bytes of" in output
    assert "from position 60" in output
    (file,) = (tmp_path / "old" / "t-0").iterdir()
    file.write_bytes(HELLO + WORLD + OLD)
    assert "left out" not in call("import-07", str(tmp_path / "old"), "--store", store)
    call("import-07", str(tmp_path / "old"), "--store", store)  # all of it is there
    with Served(store) as served, served.client() as client:
        assert client.fetch("t", 0, 30) == HELLO + WORLD + OLD
        assert client.offsets("t", 0, most=10) == [74, 30]


@pytest.mark.parametrize("tail", [b"\0", b"\0\0\0", WORLD[:4], WORLD[:-1], WORLD[:-1] + b"X"], ids=bytes.hex)
def test_what_is_exported_again_ends_where_the_torn_tail_began(store: str, tmp_path: Path, tail: bytes) -> None:
    lay(tmp_path / "old" / "t-0", (FAR, WORLD), (FAR + 15, HELLO + OLD + tail))
    output = call("import-07", str(tmp_path / "old"), "--store", store)
    assert f"t-0: the last {len(tail)} bytes of" in output
    call("export-07", str(tmp_path / "new"), "--store", store)
    (file,) = (tmp_path / "new" / "t-0").iterdir()
    assert (file.name, file.read_bytes()) == (f"{FAR:020d}.kafka", WORLD + HELLO + OLD)


def test_the_file_of_kafkas_own_tests(store: str, tmp_path: Path) -> None:
    """The end of section 12: 100 entries of 109 bytes."""
    entry = encode_message(b"x" * 100, magic=0)
    assert entry.startswith(bytes.fromhex("00000069 00 5e0e5d8f 7878"))
    data = entry * 100
    assert len(data) == 10900
    lay(tmp_path / "old" / "test-0", (0, data))
    call("import-07", str(tmp_path / "old"), "--store", store)
    with Served(store) as served, served.client() as client:
        assert client.fetch("test", 0, 0) == data
        assert client.fetch("test", 0, 99 * 109) == entry
        assert client.offsets("test", 0, most=10) == [10900, 0]


def has_something(store: str) -> bool:
    """Whether the log of t-0 has a batch."""
    if store.startswith("file:"):
        return any(file.stat().st_size for file in Path(store.removeprefix("file:")).glob("t-0/*.log"))
    with redis.Redis.from_url(store) as client:
        return bool(client.exists("korvet:t:0"))


@pytest.mark.timeout(300)
def test_a_killed_import_goes_on_where_it_was(store: str, tmp_path: Path) -> None:
    message = encode_message(bytes(range(256)) * 1024)
    whole = message * 160
    lay(tmp_path / "old" / "t-0", (FAR, whole[: len(whole) // 2]), (FAR + len(whole) // 2, whole[len(whole) // 2 :]))
    command = [sys.executable, "-m", "korvet_fast", "import-07", str(tmp_path / "old"), "--store", store]
    for _ in range(3):  # again at once: what the killed one left in Redis looks like a broker that runs
        loading = subprocess.Popen(command)
        while loading.poll() is None and not has_something(store):
            time.sleep(0.005)
        time.sleep(0.05)
        loading.kill()
        assert loading.wait() in (0, -signal.SIGKILL)
    call("import-07", str(tmp_path / "old"), "--store", store)
    call("export-07", str(tmp_path / "new"), "--store", store, "--topic", "t")
    (file,) = (tmp_path / "new" / "t-0").iterdir()
    assert (file.name, file.read_bytes()) == (f"{FAR:020d}.kafka", whole)


def test_logs_with_other_messages_are_left_alone(tmp_path: Path) -> None:
    store = f"file:{tmp_path / 'data'}"
    lay(tmp_path / "old" / "t-0", (0, HELLO + WORLD))
    call("import-07", str(tmp_path / "old"), "--store", store)
    for number, data in enumerate([WORLD + HELLO + OLD, HELLO], start=1):
        lay(tmp_path / f"other{number}" / "t-0", (0, data))
        output = call("import-07", str(tmp_path / f"other{number}"), "--store", store, code=1)
        assert "has messages up to position 30 that are not those of" in output
    lay(tmp_path / "far" / "t-0", (300, HELLO))
    assert "has messages up to position 30" in call("import-07", str(tmp_path / "far"), "--store", store, code=1)


def test_damage_says_where(tmp_path: Path) -> None:
    store = ("--store", f"file:{tmp_path / 'data'}")
    lay(tmp_path / "middle" / "t-0", (0, HELLO + b"\0" * 15), (30, HELLO))
    assert "00000000000000000000.kafka: no whole message with a good CRC at byte 15" in call(
        "import-07", str(tmp_path / "middle"), *store, code=1
    )
    lay(tmp_path / "last" / "t-0", (0, HELLO + HELLO[:-1] + b"x" + WORLD))
    output = call("import-07", str(tmp_path / "last"), *store, code=1)
    assert "the message at byte 15 is damaged, and whole messages follow it" in output
    assert "the 30 bytes from there on" in output
    lay(tmp_path / "inner" / "u-0", (0, encode_message(b"no gzip", 1)))
    output = call("import-07", str(tmp_path / "inner"), *store, code=1)
    assert "u-0: a compressed message between positions 0 and 17 is damaged" in output
    many = encode_message(compression.compress(1, encode_message(b"", magic=0) * 4000), 1)
    lay(tmp_path / "many" / "v-0", (0, many))
    assert "more messages than it has bytes" in call("import-07", str(tmp_path / "many"), *store, code=1)
    (tmp_path / "nothing").mkdir()
    output = call("import-07", str(tmp_path / "nothing"), *store, code=1)
    assert "holds no log of Kafka 0.7" in output
    assert "server.properties" in output


def test_what_is_in_the_way_is_named(tmp_path: Path) -> None:
    store = ("--store", f"file:{tmp_path / 'data'}")
    lay(tmp_path / "blank" / "my topic-0", (0, HELLO))
    assert "topic my topic of 1 partitions cannot be made: a topic's name is" in call(
        "import-07", str(tmp_path / "blank"), *store, code=1
    )
    lay(tmp_path / "many" / "t-20240101", (0, HELLO))
    assert "topic t of 20240102 partitions cannot be made" in call("import-07", str(tmp_path / "many"), *store, code=1)
    lay(tmp_path / "gone" / "t-0", (0, HELLO))
    (tmp_path / "gone" / "t-0" / "00000000000000000015.kafka").symlink_to(tmp_path / "nowhere")
    output = call("import-07", str(tmp_path / "gone"), *store, code=1)
    assert "00000000000000000015.kafka: No such file or directory. When that is mended, run this again" in output


def test_it_does_not_run_beside_a_broker(store: str, tmp_path: Path) -> None:
    lay(tmp_path / "old" / "t-0", (0, HELLO))
    with Served(store):
        output = call("import-07", str(tmp_path / "old"), "--store", store, "--set", "node.id=77", code=1)
    assert "brokers are running" in output or "is in use by the process" in output


def test_what_cannot_be_written_is_said(tmp_path: Path) -> None:
    store = ("--store", f"file:{tmp_path / 'data'}")
    lay(tmp_path / "old" / "t-0", (0, HELLO))
    call("import-07", str(tmp_path / "old"), *store)
    assert "there is no topic x of the layout legacy" in call(
        "export-07", str(tmp_path / "new"), "--topic", "x", *store, code=1
    )
    assert "exists" in call("export-07", str(tmp_path / "old"), "--topic", "t", *store, code=1)
