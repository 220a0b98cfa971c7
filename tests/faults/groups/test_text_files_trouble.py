"""`groups.json` and `offsets.json` in trouble: a full disk, damage, and a group that moves to them or away."""

import asyncio
import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from broker_process import BrokerProcess
from faults.full_disk import fill, make_room
from faults.redis.log import wait_for_line
from kafka_server import JOIN_GROUP, LEAVE_GROUP, OFFSET_COMMIT, OFFSET_FETCH, RawClient, error_of
from raw_connection import connect
from redis_server import free_port
from text_client import PATIENCE, TextClient

SETTINGS = ("num.partitions=2", "text.session.timeout.ms=600000", "group.initial.rebalance.delay.ms=0")
DYING = Path(__file__).with_name("dying_text_broker.py")
STEPS = 6  # of a write
FILES = ("groups.json", "offsets.json")
KAFKAS = "the members of this group speak Kafka's protocol: take another name"


def ask_until(client: TextClient, line: str, wanted: str) -> None:
    """Send a line again while the store cannot take it."""
    deadline = time.monotonic() + PATIENCE
    while (answer := client.ask(line)) != wanted:
        assert "|ERR|STORAGE_ERROR|" in answer
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.mark.parametrize("restart", [False, True])
def test_a_full_disk_loses_no_commit_and_takes_none(small_disk: Path, restart: bool) -> None:
    data, port, filler = small_disk / "data", free_port(), small_disk / "filler"
    filler.write_bytes(bytes(200_000))
    process = BrokerProcess(data, *SETTINGS, arguments=("--listen", f"text://127.0.0.1:{port}"))
    with process:
        with TextClient(port) as client:
            assert "OK" in client.ask("V1|1|PRODUCE|t :v acks=all")
            assert client.ask("V1|2|JOIN|g t c") == "V1|2|OK|generation=1 assigned=[0,1]"
            assert client.ask("V1|3|COMMIT|g t c 1 0 5") == "V1|3|OK|committed=true"
            before = {name: (data / name).read_bytes() for name in FILES}
            fill(filler)
            for offset in range(6, 9):
                assert "|ERR|STORAGE_ERROR|" in client.ask(f"V1|4|COMMIT|g t c 1 0 {offset}")
            assert "|ERR|STORAGE_ERROR|" in client.ask("V1|5|JOIN|h t c")
            assert {name: (data / name).read_bytes() for name in FILES} == before
            if not restart:
                make_room(filler)
                ask_until(client, "V1|6|COMMIT|g t c 1 0 9", "V1|6|OK|committed=true")
        wait_for_line(process, "No space left on device")
        process.kill()
    if restart:
        make_room(filler)
    with process, TextClient(port) as client:
        ask_until(client, "V1|7|OFFSET|g t 0", f"V1|7|OK|offset={5 if restart else 9}")
        assert client.ask("V1|8|SYNC|g t c 1") == "V1|8|OK|generation=1 assigned=[0,1]"
        assert client.ask("V1|9|JOIN|h t c") == "V1|9|OK|generation=1 assigned=[0,1]"
        assert "Traceback" not in "".join(process.log)


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "cut": lambda good: good[: len(good) // 2],
    "empty": lambda good: b"",
    "zeros": lambda good: bytes(len(good)),
    "no-utf-8": lambda good: good.replace(b"{", b"{\xff", 1),
    "a-list": lambda good: b"[]",
    "null": lambda good: b"null",
    "a-group-that-is-a-number": lambda good: b'{"g": 7}',
    "a-group-that-is-a-text": lambda good: b'{"g": {"t": "x"}}',
    "twice-as-deep-as-anything": lambda good: b'{"g":' + b"[" * 20_000,
    "a-number-without-an-end": lambda good: b'{"g": ' + b"9" * 10_000 + b"}",
    "a-word-for-a-number": lambda good: good.replace(b'"generation": 1', b'"generation": "x"').replace(
        b": 5", b': "x"'
    ),
}


@pytest.fixture(scope="module")
def joined(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The data directory of a broker that a text member joined, and committed to; the broker has ended."""
    data, port = tmp_path_factory.mktemp("joined") / "data", free_port()
    process = BrokerProcess(data, *SETTINGS, arguments=("--listen", f"text://127.0.0.1:{port}"))
    with process, TextClient(port) as client:
        assert "OK" in client.ask("V1|1|PRODUCE|t :v acks=all")
        assert client.ask("V1|2|JOIN|g t c") == "V1|2|OK|generation=1 assigned=[0,1]"
        assert client.ask("V1|3|COMMIT|g t c 1 0 5") == "V1|3|OK|committed=true"
    return data


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_file_is_named_and_kept(joined: Path, tmp_path: Path, name: str, damage: str) -> None:
    data, port = shutil.copytree(joined, tmp_path / "data"), free_port()
    process = BrokerProcess(data, *SETTINGS, arguments=("--listen", f"text://127.0.0.1:{port}"))
    good = (data / name).read_bytes()
    bad = DAMAGES[damage](good)
    (data / name).write_bytes(bad)
    with pytest.raises(AssertionError, match="did not become ready"), process:
        pass
    said = "".join(process.log)
    assert f"{name} in the data directory is not as this broker wrote it" in said
    assert "Copy it back; or move groups.json and offsets.json away" in said
    assert "Traceback" not in said
    assert len(said) < 1_000
    assert (data / name).read_bytes() == bad
    (data / name).write_bytes(good)
    with process, TextClient(port) as client:
        assert client.ask("V1|4|OFFSET|g t 0") == "V1|4|OK|offset=5"


async def _commit(client: RawClient) -> None:
    """An offset of a client that is no member."""
    partitions = [{"partition_index": 0, "committed_offset": 5}]
    answer = await client.ask(OFFSET_COMMIT, 7, group_id="g", generation_id_or_member_epoch=-1, member_id="",
                              topics=[{"name": "t", "partitions": partitions}])  # fmt: skip
    assert answer["topics"][0]["partitions"][0]["error_code"] == 0


async def _join(client: RawClient) -> None:
    """Kafka's protocol takes the group over, and leaves it empty."""
    timeouts = {"session_timeout_ms": 600_000, "rebalance_timeout_ms": 600_000}
    protocols = {"protocol_type": "consumer", "protocols": [{"name": "range", "metadata": b"what I read"}]}
    joined = await client.ask(JOIN_GROUP, 3, group_id="g", member_id="", **timeouts, **protocols)
    assert error_of(joined) == ""
    assert error_of(await client.ask(LEAVE_GROUP, 2, group_id="g", member_id=joined["member_id"])) == ""


async def _offset(client: RawClient) -> None:
    topics = [{"name": "t", "partition_indexes": [0]}]
    answer = await client.ask(OFFSET_FETCH, 7, group_id="g", topics=topics)
    assert answer["topics"][0]["partitions"][0]["committed_offset"] == 5


def ask_kafka(port: int, scenario: Callable[[RawClient], object]) -> None:
    async def run() -> None:
        async with asyncio.timeout(PATIENCE), connect(port) as client:
            await scenario(client)  # type: ignore[misc]

    asyncio.run(run())


@pytest.fixture(scope="module")
def committed(tmp_path_factory: pytest.TempPathFactory) -> dict[bool, Path]:
    """Two data directories with an offset that Kafka's client committed: kept by the files (False), by the registry."""
    directories = {}
    for to_files in (True, False):
        data, port = tmp_path_factory.mktemp("committed") / "data", free_port()
        process = BrokerProcess(data, *SETTINGS, arguments=("--listen", f"text://127.0.0.1:{port}"))
        with process, TextClient(port) as client:
            assert "OK" in client.ask("V1|1|PRODUCE|t :v acks=all")
            ask_kafka(process.port, _commit)
            if not to_files:
                assert client.ask("V1|2|JOIN|g t c") == "V1|2|OK|generation=1 assigned=[0,1]"
                assert client.ask("V1|3|LEAVE|g t c 1") == "V1|3|OK|left=true"
        directories[to_files] = data
    return directories


@pytest.mark.parametrize("step", range(1, 2 * STEPS + 1))
@pytest.mark.parametrize("to_files", [True, False])
def test_a_group_that_moves_keeps_its_offsets_whenever_the_broker_dies(
    committed: dict[bool, Path], tmp_path: Path, to_files: bool, step: int
) -> None:
    """Into the files: `offsets.json`, `groups.json`, then the registry. Away: the registry, then the two."""
    data, port = shutil.copytree(committed[to_files], tmp_path / "data"), free_port()
    arguments = ("--listen", f"text://127.0.0.1:{port}")
    before = (sys.executable, str(DYING), str(step))
    dying = BrokerProcess(data, *SETTINGS, before=before, arguments=arguments).start()
    try:
        if to_files:
            with TextClient(port) as client:
                client.ask("V1|4|JOIN|g t c")
        else:
            ask_kafka(dying.port, _join)
    except (ConnectionError, asyncio.IncompleteReadError):
        pass  # it died before it answered
    dying.kill()
    with BrokerProcess(data, *SETTINGS, arguments=arguments) as process, TextClient(port) as client:
        ask_kafka(process.port, _offset)
        assert client.ask("V1|5|OFFSET|g t 0") == "V1|5|OK|offset=5"
        answer = client.ask("V1|6|JOIN|g t c")
        # Who joined by Kafka's protocol may still be there.
        assert answer.startswith("V1|6|OK|generation=") or (not to_files and answer.endswith(f"|{KAFKAS}"))
        assert client.ask("V1|7|OFFSET|g t 0") == "V1|7|OK|offset=5"
        assert "Traceback" not in "".join(process.log)
