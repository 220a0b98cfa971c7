"""The text protocol over real sockets and both stores: the table of exchanges, limits, and what other doors see."""

import asyncio
import contextlib
import re
import socket
import subprocess
from base64 import b64decode
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from urllib.parse import unquote_to_bytes

import pytest

from batches import read_rows
from broker_process import BrokerProcess
from kafka_server import (
    DELETE_RECORDS,
    DESCRIBE_GROUPS,
    JOIN_GROUP,
    LIST_GROUPS,
    OFFSET_FETCH,
    RawClient,
    error_of,
    make_batch,
)
from raw_connection import connect
from redis_server import RedisServer, find_program, free_port
from requirement import require
from text_client import PATIENCE, PATIENT, TextClient
from text_exchanges import PARTITIONS, partition_of, read_script, scripts

SETTINGS = ("controller.mutation.rate=1000000", f"num.partitions={PARTITIONS}", "group.initial.rebalance.delay.ms=0")
SETTINGS += ("text.session.timeout.ms=600000",)  # a slow machine is no reason to lose a member


class TextBroker:
    """A broker process with both doors."""

    def __init__(self, process: BrokerProcess, port: int, *, files: bool) -> None:
        self.process = process
        self.port = port
        self.files = files  # over files, not over Redis

    def connect(self) -> TextClient:
        return TextClient(self.port)

    def kafka(self, scenario: Callable[[RawClient], Awaitable[None]]) -> None:
        """Run `scenario` with a client of Kafka's door."""

        async def run() -> None:
            async with asyncio.timeout(PATIENCE), connect(self.process.port) as client:
                await scenario(client)

        asyncio.run(run())


@pytest.fixture(scope="module", params=["files", "redis"])
def text(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TextBroker]:
    """One broker for all tests of the module; each test uses its own topics and groups."""
    directory, port = tmp_path_factory.mktemp("text"), free_port()
    arguments = ("--listen", f"text://127.0.0.1:{port}")
    if request.param == "files":
        with BrokerProcess(directory / "data", *SETTINGS, before=PATIENT, arguments=arguments) as process:
            yield TextBroker(process, port, files=True)
        return
    server = RedisServer(find_program("redis-distribution"), directory / "redis", appendonly="yes").start()
    try:
        settings = (*SETTINGS, "storage.layout=batches")
        store = f"{server.url}/0"
        with BrokerProcess(directory, *settings, store=store, before=PATIENT, arguments=arguments) as process:
            yield TextBroker(process, port, files=False)
    finally:
        server.kill()


def one_by_one(client: TextClient, lines: list[bytes]) -> list[str]:
    answers = []
    for line in lines:
        client.send(line)
        answers.append(client.answer())
    return answers


def at_once(client: TextClient, lines: list[bytes]) -> list[str]:
    client.send(b"".join(lines))
    return [client.answer() for _ in lines]


def byte_by_byte(client: TextClient, lines: list[bytes]) -> list[str]:
    with contextlib.suppress(ConnectionError):  # an answer that closes the connection may come before the line's end
        for byte in b"".join(lines):
            client.send(bytes([byte]))
    return [client.answer() for _ in lines]


@pytest.mark.parametrize("way", [one_by_one, at_once, byte_by_byte])
@pytest.mark.parametrize(("name", "script"), scripts(), ids=[name for name, _ in scripts()])
def test_the_exchanges(
    text: TextBroker, name: str, script: str, way: Callable[[TextClient, list[bytes]], list[str]]
) -> None:
    exchanges, closed = read_script(script, f"{name}-{way.__name__}")
    with text.connect() as client:
        answers = way(client, [sent for sent, _ in exchanges])
        for (sent, wanted), answer in zip(exchanges, answers, strict=True):
            assert re.fullmatch(wanted, answer), (sent, wanted, answer)
        if closed:
            assert client.ended()


def test_the_table_is_as_long_as_it_should_be() -> None:
    assert sum(len(read_script(script, name)[0]) for name, script in scripts()) >= 150


def test_the_examples_of_the_protocol_work_as_they_are(text: TextBroker) -> None:
    lines = b"V1|42|PRODUCE|orders user1:created\nV1|43|PRODUCE|orders user1:created acks=all\nV1|99|PING|\n"
    with text.connect() as client:  # as `nc -N` does: all of its input, its end, all of the output
        client.send(lines)
        client.socket.shutdown(socket.SHUT_WR)
        said = client.rest()
    place = partition_of("user1")
    first, *others = said.decode().splitlines()
    assert re.fullmatch(rf"V1\|42\|OK\|partition={place} offset=0 hw=\d", first)
    assert others == [f"V1|43|OK|partition={place} offset=1 hw=2", "V1|99|OK|pong"]


def test_the_seeds_examples_work_with_nc(tmp_path: Path) -> None:
    """Piped in as the protocol's page has them: `nc -N` closes its half behind them, and ends when the broker does."""
    lines = "V1|42|PRODUCE|orders user1:created\nV1|43|PRODUCE|orders user1:created acks=all\nV1|99|PING|\n"
    port = free_port()
    command = [require("nc"), "-N", "127.0.0.1", str(port)]
    listening = ("--listen", f"text://127.0.0.1:{port}")
    with BrokerProcess(tmp_path / "data", *SETTINGS, before=PATIENT, arguments=listening):
        done = subprocess.run(command, input=lines, capture_output=True, text=True, timeout=PATIENCE, check=True)
    place = partition_of("user1")
    first, *others = done.stdout.splitlines()
    assert re.fullmatch(rf"V1\|42\|OK\|partition={place} offset=0 hw=\d", first)
    assert others == [f"V1|43|OK|partition={place} offset=1 hw=2", "V1|99|OK|pong"]


def test_a_session_can_be_typed_into_nc(text: TextBroker) -> None:
    """A line, its answer, the next line: as a person works."""
    command = [require("nc"), "-N", "127.0.0.1", str(text.port)]
    exchanges = [
        ("V1|1|PRODUCE|nc :v acks=all", "V1|1|OK|partition=0 offset=0 hw=1"),
        ("V1|2|CONSUME|nc 0 0", "V1|2|OK|messages=0:v hw=1"),
        ("V1|3|JOIN|nc nc worker-1", "V1|3|OK|generation=1 assigned=[0,1,2]"),
        ("V1|4|COMMIT|nc nc worker-1 1 0 1", "V1|4|OK|committed=true"),
        ("V1|5|OFFSET|nc nc 0", "V1|5|OK|offset=1"),
        ("V1|6|LEAVE|nc nc worker-1 1", "V1|6|OK|left=true"),
    ]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1) as nc:
        assert nc.stdin is not None
        assert nc.stdout is not None
        for line, answer in exchanges:
            nc.stdin.write(f"{line}\n")
            assert nc.stdout.readline() == f"{answer}\n"
        nc.stdin.close()
        assert nc.stdout.read() == ""


def test_many_lines_at_once_are_answered_in_order(text: TextBroker) -> None:
    lines = [b"V1|%d|PRODUCE|many key:value %d acks=all\n" % (number, number) for number in range(5_000)]
    index = partition_of("key")
    with text.connect() as client:
        answers = at_once(client, lines)
        offsets = [int(re.fullmatch(rf"V1\|{n}\|OK\|partition={index} offset=(\d+) hw=\d+", one)[1])  # type: ignore[index]
                   for n, one in enumerate(answers)]  # fmt: skip
        assert offsets == list(range(5_000))
        wanted = ",".join(f"{number}:value {number}" for number in range(500))
        assert client.ask(f"V1|x|CONSUME|many {index} 0") == f"V1|x|OK|messages={wanted} hw=5000"
        wanted = ",".join(f"{number}:value {number}" for number in range(1_234, 5_000))
        assert client.ask(f"V1|x|CONSUME|many {index} 1234 max=10000") == f"V1|x|OK|messages={wanted} hw=5000"


def test_an_answer_has_a_mebibyte_at_most(text: TextBroker) -> None:
    with text.connect() as client:
        at_once(client, [b"V1|1|PRODUCE|wide key:%s acks=all\n" % (b"x" * 100_000)] * 15)
        first = client.ask(f"V1|1|CONSUME|wide {partition_of('key')} 0")
        assert first.count(",") == 9
        assert first.endswith(" hw=15")
        second = client.ask(f"V1|1|CONSUME|wide {partition_of('key')} 10")
        assert second.count(",") == 4


def test_topics_of_one_run_are_answered_in_the_order_of_lines(text: TextBroker) -> None:
    names = [f"mixed-{number % 7}" for number in range(70)]
    lines = [b"V1|%d|PRODUCE|%s k:%d acks=all\n" % (number, name.encode(), number) for number, name in enumerate(names)]
    with text.connect() as client:
        for round_ in range(2):
            for number, answer in enumerate(at_once(client, lines)):
                begin = f"V1|{number}|OK|partition={partition_of('k')} offset={number // 7 + round_ * 10} hw="
                assert answer.startswith(begin), answer


def test_no_line_makes_a_topic_of_the_metadata_logs_name(text: TextBroker) -> None:
    with text.connect() as client:
        answer = client.ask("V1|1|PRODUCE|__cluster_metadata k:v")
        assert answer == "V1|1|ERR|UNKNOWN_TOPIC|there is no such topic or partition"


def test_a_line_that_is_too_long_ends_the_connection(text: TextBroker) -> None:
    with text.connect() as client:
        value = b"x" * ((1 << 20) - len(b"V1|1|PRODUCE|long k: acks=all"))
        client.send(b"V1|1|PRODUCE|long k:%s acks=all\r\n" % value)
        answer = client.answer()  # the batch is just above the topic's limit
        assert answer == "V1|1|ERR|BAD_REQUEST|The batch is larger than the topic's max.message.bytes."
    with text.connect() as client:
        client.send(b"V1|9|PING|" + b" " * (1 << 20))
        assert client.answer() == "V1|0|ERR|BAD_REQUEST|line too long"
        assert client.ended()
    with text.connect() as client:
        assert client.ask("V1|1|PING|") == "V1|1|OK|pong"


def test_what_is_no_text_protocol_gets_a_sentence_and_a_close(text: TextBroker) -> None:
    versions = b"\0\0\0\x12\0\x12\0\x03\0\0\0\1\0\4name\0\1\1\0"
    for first in (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", versions, b"\x16\x03\x01\0\x05hello", b"*1\r\n$4\r\nPING\r\n"):
        with text.connect() as client:
            client.send(first)
            assert client.answer() == "V1|0|ERR|BAD_REQUEST|this port speaks the text protocol only"
            assert client.ended()


def test_a_half_line_is_not_carried_out(text: TextBroker) -> None:
    with text.connect() as client:
        client.send(b"V1|1|PING|\nV1|2|PRODUCE|half k:v")
        client.socket.shutdown(socket.SHUT_WR)
        assert client.answer() == "V1|1|OK|pong"
        assert client.ended()
    with text.connect() as client:
        assert "UNKNOWN_TOPIC" in client.ask("V1|1|CONSUME|half 0 0")


def test_half_lines_of_many_connections_harm_nobody(text: TextBroker) -> None:
    clients = [text.connect() for _ in range(100)]
    try:
        for client in clients:
            client.send(b"V1|1|PRODUCE|t k:" + b"x" * 5_000)
        with text.connect() as client:
            assert client.ask("V1|1|PING|") == "V1|1|OK|pong"
    finally:
        for client in clients:
            client.close()


def test_what_text_writes_kafka_reads_and_the_other_way_round(text: TextBroker) -> None:
    with text.connect() as client:
        assert "OK" in client.ask("V1|1|PRODUCE|doors a:from text, ä acks=all")
        assert "OK" in client.ask("V1|2|PRODUCE|doors :no key acks=all")

    async def kafka(client: RawClient) -> None:
        row = await client.fetch("doors", 0, index=partition_of("a"))
        assert ("from text, ä").encode() in [value for _, value in read_rows(row["records"])]
        values = [b"plain", b"comma, and\nV1|666|OK|forged\r\0", b"\xff\xfe", b""]
        row = await client.produce("doors", make_batch(*values), index=partition_of("a"))
        assert row["error_code"] == 0

    text.kafka(kafka)
    index, forged = partition_of("a"), b"comma, and\nV1|666|OK|forged\r\0"
    with text.connect() as client:
        start = int(re.search(r"messages=(\d+):", client.ask(f"V1|3|CONSUME|doors {index} 0"))[1])  # type: ignore[index]
        plain = client.ask(f"V1|3|CONSUME|doors {index} 0")
        assert "comma, and\ufffdV1|666|OK|forged\ufffd\ufffd" in plain
        assert "\ufffd\ufffd," in plain
        for encoding, decode in (("percent", unquote_to_bytes), ("base64", b64decode)):
            answer = client.ask(f"V1|4|CONSUME|doors {index} {start} encoding={encoding}")
            found = [one.partition(":")[2] for one in answer.split("messages=")[1].split(" hw=")[0].split(",")]
            assert [decode(value) for value in found][-3:] == [forged, b"\xff\xfe", b""]


def test_compressed_batches_of_kafka_are_read(text: TextBroker) -> None:
    values = [b"v%d " % number * 30 for number in range(3_000)]

    async def kafka(client: RawClient) -> None:
        assert (await client.create("packed"))["error_code"] == 0
        assert (await client.produce("packed", make_batch(*values, compression=1)))["error_code"] == 0

    text.kafka(kafka)
    with text.connect() as client:
        answer = client.ask("V1|1|CONSUME|packed 0 2000 max=3")
        assert (
            answer
            == "V1|1|OK|messages=" + ",".join(f"{n}:{values[n].decode()}" for n in range(2000, 2003)) + " hw=3000"
        )


def test_what_was_removed_is_passed_over(text: TextBroker) -> None:
    async def kafka(client: RawClient) -> None:
        assert (await client.create("removed"))["error_code"] == 0
        for value in (b"a", b"b", b"c"):
            assert (await client.produce("removed", make_batch(value)))["error_code"] == 0
        partitions = [{"partition_index": 0, "offset": 2}]
        topics = [{"name": "removed", "partitions": partitions}]
        answer = await client.ask(DELETE_RECORDS, 2, topics=topics, timeout_ms=60_000)
        assert answer["topics"][0]["partitions"][0]["error_code"] == 0

    text.kafka(kafka)
    with text.connect() as client:
        assert client.ask("V1|1|CONSUME|removed 0 0") == "V1|1|OK|messages=2:c hw=3"


def test_copies_that_cannot_be_made_are_said(text: TextBroker) -> None:
    async def kafka(client: RawClient) -> None:
        assert (await client.create("copied", min_insync_replicas="2"))["error_code"] == 0

    text.kafka(kafka)
    with text.connect() as client:
        why = "fewer copies can be made than min.insync.replicas asks for; nothing was stored"
        assert client.ask("V1|1|PRODUCE|copied k:v acks=all") == f"V1|1|ERR|REPLICATION_TIMEOUT|{why}"
        assert client.ask("V1|2|PRODUCE|copied k:v acks=1").startswith("V1|2|OK|partition=0 offset=0 hw=")


def test_a_record_may_be_an_entry_of_a_stream(text: TextBroker) -> None:
    if text.files:
        return  # only Redis has entries

    async def kafka(client: RawClient) -> None:
        assert (await client.create("entries", storage_layout="entries"))["error_code"] == 0

    text.kafka(kafka)
    with text.connect() as client:
        assert client.ask("V1|1|CONSUME|entries 0 0").startswith("V1|1|OK|messages= hw=")
        answers = at_once(client, [b"V1|2|PRODUCE|entries k:%d acks=all\n" % number for number in range(50)])
        offsets = [int(answer.split("offset=")[1].split(" ")[0]) for answer in answers]
        wanted = ",".join(f"{offset}:{number}" for number, offset in enumerate(offsets))
        assert client.ask("V1|3|CONSUME|entries 0 0") == f"V1|3|OK|messages={wanted} hw={offsets[-1] + 1}"
        last = f"V1|4|OK|messages={offsets[-1]}:49 hw={offsets[-1] + 1}"
        assert client.ask(f"V1|4|CONSUME|entries 0 {offsets[-1]}") == last


def test_groups_and_offsets_are_seen_through_kafkas_door(text: TextBroker) -> None:
    with text.connect() as client:
        assert "OK" in client.ask("V1|1|PRODUCE|seen :v acks=all")
        assert client.ask("V1|2|JOIN|watched seen c1") == "V1|2|OK|generation=1 assigned=[0,1,2]"
        assert client.ask("V1|3|COMMIT|watched seen c1 1 2 17") == "V1|3|OK|committed=true"

    async def kafka(client: RawClient) -> None:
        listed = await client.ask(LIST_GROUPS, 4)
        assert ("watched", "text", "Stable") in [
            (row["group_id"], row["protocol_type"], row["group_state"]) for row in listed["groups"]
        ]
        (row,) = (await client.ask(DESCRIBE_GROUPS, 5, groups=["watched"]))["groups"]
        assert (row["protocol_type"], row["protocol_data"], row["members"][0]["member_id"]) == (
            "text",
            "round_robin",
            "c1",
        )
        topics = [{"name": "seen", "partition_indexes": [2]}]
        answer = await client.ask(OFFSET_FETCH, 7, group_id="watched", topics=topics)
        assert answer["topics"][0]["partitions"][0]["committed_offset"] == 17

    text.kafka(kafka)


def test_a_group_has_one_protocol(text: TextBroker) -> None:
    join = {
        "session_timeout_ms": 600_000,
        "rebalance_timeout_ms": 600_000,
        "member_id": "",
        "protocol_type": "consumer",
    }
    join |= {"protocols": [{"name": "range", "metadata": b"what I read"}]}
    with text.connect() as client:
        assert "OK" in client.ask("V1|1|PRODUCE|one :v acks=all")
        assert "OK" in client.ask("V1|2|JOIN|texts one c1")

    async def kafka(kafka: RawClient) -> None:
        assert error_of(await kafka.ask(JOIN_GROUP, 3, group_id="texts", **join)) == "INCONSISTENT_GROUP_PROTOCOL"
        assert error_of(await kafka.ask(JOIN_GROUP, 3, group_id="kafkas", **join)) == ""

    text.kafka(kafka)
    why = "the members of this group speak Kafka's protocol: take another name"
    with text.connect() as client:
        for line in (
            "JOIN|kafkas one c1",
            "SYNC|kafkas one c1 1",
            "COMMIT|kafkas one c1 1 0 5",
            "LEAVE|kafkas one c1 1",
        ):
            assert client.ask(f"V1|3|{line}") == f"V1|3|ERR|BAD_REQUEST|{why}"
        assert client.ask("V1|4|LEAVE|texts one c1 1") == "V1|4|OK|left=true"

    async def take_over(kafka: RawClient) -> None:
        answer = await kafka.ask(JOIN_GROUP, 3, group_id="texts", **join)
        assert (error_of(answer), answer["generation_id"]) == ("", 3)  # it goes on where the text members ended

    text.kafka(take_over)


def test_the_session_in_the_docs_can_be_typed(tmp_path: Path) -> None:
    session = (Path(__file__).parents[2] / "docs" / "text.md").read_text().split("```text\n")[1].split("```")[0]
    port = free_port()
    listening = ("--listen", f"text://127.0.0.1:{port}")
    process = BrokerProcess(tmp_path / "data", before=PATIENT, arguments=listening)
    lines = session.strip().split("\n")
    with process, TextClient(port) as client:
        for line, wanted in zip(lines[::2], lines[1::2], strict=True):
            answer = client.ask(line)
            if "PRODUCE" in line and "acks=all" not in line:
                answer, wanted = answer.partition(" hw=")[0], wanted.partition(" hw=")[0]
            assert f"< {answer}" == wanted


def test_groups_survive_a_restart(tmp_path: Path) -> None:
    port = free_port()
    listening = ("--listen", f"text://127.0.0.1:{port}")
    process = BrokerProcess(tmp_path / "data", *SETTINGS, before=PATIENT, arguments=listening)
    with process, TextClient(port) as client:
        assert "OK" in client.ask("V1|1|PRODUCE|kept :v acks=all")
        assert client.ask("V1|2|JOIN|g kept c1 assignor=range") == "V1|2|OK|generation=1 assigned=[0,1,2]"
        assert client.ask("V1|3|JOIN|g kept c2") == "V1|3|OK|generation=2 assigned=[2]"
        assert client.ask("V1|4|COMMIT|g kept c2 2 2 9") == "V1|4|OK|committed=true"
        process.kill()
    with process, TextClient(port) as client:
        assert client.ask("V1|5|SYNC|g kept c1 2") == "V1|5|OK|generation=2 assigned=[0,1]"
        assert client.ask("V1|6|OFFSET|g kept 2") == "V1|6|OK|offset=9"
        assert client.ask("V1|7|JOIN|g kept c3") == "V1|7|OK|generation=3 assigned=[2]"
