"""The rules of security.md for the text protocol (B7), a test for each row, against a broker process.

Rows about peers and replicas are tested where replication is.
"""

import resource
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import pytest

from broker_process import BrokerProcess
from kafka_server import RawClient, make_batch
from redis_server import free_port
from requirement import missing
from second_client import forget_peak, peak_memory, set_up
from text_client import PATIENT, TextClient

MIB = 1 << 20
SETTINGS = ("num.partitions=1", "text.session.timeout.ms=600000", "queued.max.request.bytes=16777216")
FLOOD = ("max.connections=12000", "max.connections.per.ip=12000", "max.connection.creation.rate=1000000")
HALVES = 10_000
HUGE = ("-1", "-0", "+1", "9223372036854775808", "18446744073709551616", "9" * 400, "0x10", "1.0", "1e3", "", "٣")
MARK = "Mark\x1b[31m"  # colours what a terminal shows from here on


class Broker(NamedTuple):
    """A broker process with both doors, over a data directory. `port`: of the text listener."""

    process: BrokerProcess
    port: int
    data: Path


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """One broker for all tests."""
    port, data = free_port(), tmp_path_factory.mktemp("bad") / "data"
    arguments = ("--listen", f"text://127.0.0.1:{port}")
    with BrokerProcess(data, *SETTINGS, *FLOOD, before=PATIENT, arguments=arguments) as process:
        yield Broker(process, port, data)


def assert_served(broker: Broker) -> None:
    """Somebody else is answered all the while."""
    with TextClient(broker.port) as client:
        assert client.ask("V1|w|PING|") == "V1|w|OK|pong"
        assert client.ask("V1|w|PRODUCE|witness k:v acks=all").startswith("V1|w|OK|partition=0 offset=")


# -- Nothing inside of topic, key or payload forges a second command ---------------------------------------------------


@pytest.mark.parametrize("place", ["t{} k:v", "t k{}:v", "t k:v{}", "t k:v acks={}"])
@pytest.mark.parametrize("forged", ["\r", "\0", "\rV1|2|PRODUCE|forged k:v", "\0V1|2|PRODUCE|forged k:v"])
def test_b7_a_control_in_a_line_makes_no_second_command(broker: Broker, place: str, forged: str) -> None:
    """A lone CR, and NUL, wherever they stand."""
    with TextClient(broker.port) as client:
        client.send(f"V1|1|PRODUCE|{place.format(forged + 'x')}\nV1|3|PING|\n".encode())
        assert client.answer().startswith("V1|0|ERR|BAD_REQUEST|")
        assert client.answer() == "V1|3|OK|pong"
        assert "UNKNOWN_TOPIC" in client.ask("V1|4|CONSUME|forged 0 0")


def test_b7_a_record_of_another_door_makes_no_second_answer(broker: Broker) -> None:
    values = [b"a\nV1|9|OK|forged", b"b\r\nV1|9|OK|forged", b"c\0|", b"d\rV1|9|OK|forged", b"\xff\xfe\xc3", b"e|,|f"]

    async def produce(client: RawClient) -> None:
        assert (await client.create("records"))["error_code"] == 0
        assert (await client.produce("records", make_batch(*values)))["error_code"] == 0

    set_up(broker.process.port, produce)
    with TextClient(broker.port) as client:
        for encoding in ("plain", "percent", "base64"):
            client.send(f"V1|1|CONSUME|records 0 0 encoding={encoding}\nV1|2|PING|\n".encode())
            answer = client.answer()
            assert answer.startswith("V1|1|OK|messages=0:")
            assert answer.endswith(f" hw={len(values)}")
            assert not set("\r\0") & set(answer)
            assert client.answer() == "V1|2|OK|pong"


def test_b7_a_line_is_never_split_at_more_bars_than_the_grammar_has(broker: Broker) -> None:
    bars = "|" * 100_000
    with TextClient(broker.port) as client:
        answer = client.ask(f"V1|1|PRODUCE|bars k:V1|2|PING|{bars} acks=all")
        assert answer == "V1|1|OK|partition=0 offset=0 hw=1"
        assert client.ask("V1|2|CONSUME|bars 0 0") == f"V1|2|OK|messages=0:V1|2|PING|{bars} hw=1"
        assert client.ask(f"V1|3|JOIN|g{bars[:200]} bars c|1") == "V1|3|OK|generation=1 assigned=[0]"
        assert client.ask(f"V1|4|PING|{bars}").startswith("V1|4|ERR|BAD_REQUEST|")
        assert client.ask(bars).startswith("V1|0|ERR|BAD_REQUEST|")


# -- Limits while reading ----------------------------------------------------------------------------------------------


def test_b7_a_line_without_an_end_is_refused_while_it_is_read(broker: Broker) -> None:
    before = forget_peak(broker.process)
    with ExitStack() as stack:
        for _ in range(20):
            client = stack.enter_context(TextClient(broker.port))
            try:
                for _ in range(64):
                    client.send(b"V1|1|PRODUCE|t k:" + b"x" * MIB)
            except OSError:
                continue  # it is closed: an answer that was under way may have been lost with the rest
            raise AssertionError("64 MiB without a line end were taken")
        assert_served(broker)
    assert peak_memory(broker.process) - before < 48 * MIB


def test_b7_a_line_has_a_limit_of_fields(broker: Broker) -> None:
    with TextClient(broker.port) as client:
        for command in ("CONSUME", "JOIN", "SYNC", "HEARTBEAT", "LEAVE", "COMMIT", "OFFSET", "SET_PARTITION_ROLE"):
            assert client.ask(f"V1|1|{command}|{'a ' * 400_000}").startswith("V1|1|ERR|BAD_REQUEST|write: ")
    assert_served(broker)


def test_b7_ten_thousand_half_lines_harm_nobody(broker: Broker) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < HALVES + 1000:
        missing(f"a process may have {hard} descriptors here, too few for {HALVES} connections")
    before = forget_peak(broker.process)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    try:
        with ExitStack() as stack:
            for number in range(HALVES):
                half = stack.enter_context(socket.create_connection(("127.0.0.1", broker.port), timeout=300))
                half.sendall(b"V1|%d|PRODUCE|halves k:%d" % (number, number))
                if number % 100 == 99:  # all before are let in by then: the kernel drops whom it holds for too long
                    assert_served(broker)
        with TextClient(broker.port) as client:
            assert "UNKNOWN_TOPIC" in client.ask("V1|1|CONSUME|halves 0 0")
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert peak_memory(broker.process) - before < HALVES * 16 * 1024


def test_b7_invalid_utf_8_is_refused_in_every_name(broker: Broker) -> None:
    with TextClient(broker.port) as client:
        assert "|OK|" in client.ask("V1|1|PRODUCE|names k:v acks=all")
        for bad in (b"\xff", b"\xc3", b"\xc0\xaf", b"\xed\xa0\x80", b"\xf4\x90\x80\x80"):
            for line in (b"%s|1|PING|", b"V1|%s|PING|", b"V1|1|%s|", b"V1|1|PRODUCE|%s k:v", b"V1|1|PRODUCE|t %s:v",
                         b"V1|1|PRODUCE|t k:%s", b"V1|1|CONSUME|%s 0 0", b"V1|1|JOIN|%s names c", b"V1|1|JOIN|g %s c",
                         b"V1|1|JOIN|g names %s", b"V1|1|OFFSET|%s names 0"):  # fmt: skip
                client.send(line % bad + b"\n")
                assert client.answer().startswith("V1|0|ERR|BAD_REQUEST|"), (line, bad)


def test_b7_crlf_is_taken_and_a_lone_cr_is_not(broker: Broker) -> None:
    with TextClient(broker.port) as client:
        client.send(b"V1|1|PING|\r\nV1|2|PING|\r\r\nV1|3|PI\rNG|\r\n\rV1|4|PING|\nV1|5|PING|\n")
        answers = [client.answer() for _ in range(5)]
    assert [answer.startswith("V1|0|ERR|BAD_REQUEST|") for answer in answers] == [False, True, True, True, False]


def test_b7_three_unknown_verbs_end_the_connection(broker: Broker) -> None:
    with TextClient(broker.port) as client:
        client.send(b"V1|1|EHLO|x\nV1|2|PING|\nV1|3|EHLO|x\nV1|4|DATA|\nV1|5|QUIT|\nV1|6|PRODUCE|after k:v acks=all\n")
        answers = [client.answer() for _ in range(5)]
        assert [answer.split("|")[3] for answer in answers] == [
            "UNKNOWN_COMMAND", "pong", "UNKNOWN_COMMAND", "UNKNOWN_COMMAND", "UNKNOWN_COMMAND"]  # fmt: skip
        assert client.ended()
    with TextClient(broker.port) as client:
        assert "UNKNOWN_TOPIC" in client.ask("V1|1|CONSUME|after 0 0")


# -- Numbers -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", HUGE)
def test_b7_negative_and_huge_integers_are_refused(broker: Broker, number: str) -> None:
    lines = [f"CONSUME|t {number} 0", f"CONSUME|t 0 {number}", f"CONSUME|t 0 0 max={number}", f"SYNC|g t c {number}",
             f"HEARTBEAT|g t c {number}", f"LEAVE|g t c {number}", f"COMMIT|g t c {number} 0 0",
             f"COMMIT|g t c 1 {number} 0", f"COMMIT|g t c 1 0 {number}", f"OFFSET|g t {number}",
             f"REPLICA_FETCH|t 0 1 {number}"]  # fmt: skip
    with TextClient(broker.port) as client:
        for line in lines:
            assert client.ask(f"V1|1|{line}").startswith("V1|1|ERR|BAD_REQUEST|"), line
    assert_served(broker)


# -- Browsers, and what comes back -------------------------------------------------------------------------------------


@pytest.mark.parametrize("verb", ["GET", "POST", "HEAD", "PUT", "DELETE", "OPTIONS", "PATCH", "CONNECT", "TRACE"])
def test_b7_http_is_closed_at_once(broker: Broker, verb: str) -> None:
    """The bytes that follow are not looked at: a browser can be made to send any body."""
    body = "V1|1|PRODUCE|browser k:v acks=all\n" * 3
    with TextClient(broker.port) as client:
        client.send(f"{verb} /x HTTP/1.1\r\nHost: localhost\r\n\r\n{body}".encode())
        assert client.answer() == "V1|0|ERR|BAD_REQUEST|this port speaks the text protocol only"
        assert client.ended()
    with TextClient(broker.port) as client:
        assert "UNKNOWN_TOPIC" in client.ask("V1|1|CONSUME|browser 0 0")


def _bad_lines(mark: str) -> list[str]:
    return [mark, f"{mark}|1|PING|", f"V1|1|{mark}|", f"V1|1|PING|{mark}", f"V1|1|PRODUCE|{mark} k:v",
            f"V1|1|PRODUCE|echo {mark}", f"V1|1|PRODUCE|echo k:v acks={mark}", f"V1|1|CONSUME|{mark} 0 0",
            f"V1|1|CONSUME|echo {mark} 0", f"V1|1|CONSUME|echo 0 {mark}", f"V1|1|CONSUME|echo 0 0 {mark}=1",
            f"V1|1|CONSUME|echo 0 0 max={mark}", f"V1|1|CONSUME|echo 0 0 encoding={mark}",
            f"V1|1|JOIN|{mark} {mark} {mark}", f"V1|1|JOIN|g echo c assignor={mark}", f"V1|1|SYNC|{mark} echo c 1",
            f"V1|1|HEARTBEAT|g echo {mark} 1", f"V1|1|LEAVE|g {mark} c 1", f"V1|1|COMMIT|g echo {mark} 1 0 0",
            f"V1|1|OFFSET|g echo {mark}", f"V1|1|SET_PARTITION_ROLE|echo 0 {mark}"]  # fmt: skip


@pytest.mark.parametrize("line", _bad_lines(MARK))
def test_b7_an_error_echoes_nothing_of_its_line(broker: Broker, line: str) -> None:
    with TextClient(broker.port) as client:
        answer = client.ask(line)
    assert "|ERR|" in answer
    assert MARK[:4] not in answer
    assert "\x1b" not in answer
    assert not [said for said in broker.process.log if "\x1b" in said]


def test_b7_names_with_escape_codes_reach_no_terminal(broker: Broker) -> None:
    """The files that people read hold them as JSON's escapes."""
    with TextClient(broker.port) as client:
        assert "|OK|" in client.ask("V1|1|PRODUCE|shown k:v acks=all")
        assert client.ask(f"V1|2|JOIN|{MARK} shown {MARK}") == "V1|2|OK|generation=1 assigned=[0]"
        assert client.ask(f"V1|3|COMMIT|{MARK} shown {MARK} 1 0 1") == "V1|3|OK|committed=true"
    for name in ("groups.json", "offsets.json"):
        text = (broker.data / name).read_text()
        assert MARK[:4] in text
        assert "\x1b" not in text


def _ask_and_take_nothing(client: TextClient) -> None:
    """Ask for all there is, again and again, until the broker takes no more."""
    client.socket.settimeout(1.0)
    with pytest.raises(TimeoutError):
        for _ in range(10_000):
            client.send(b"V1|1|CONSUME|deaf 0 0\n" * 100)


def test_b7_who_takes_no_answers_is_not_read_from(broker: Broker) -> None:
    with TextClient(broker.port) as client:
        client.send(b"V1|1|PRODUCE|deaf k:%s acks=all\n" % (b"x" * 10_000) * 500)
        assert all("|OK|" in client.answer() for _ in range(500))
    before = forget_peak(broker.process)
    with TextClient(broker.port) as deaf, TextClient(broker.port) as deafer:
        _ask_and_take_nothing(deaf)
        _ask_and_take_nothing(deafer)
        assert_served(broker)
    assert peak_memory(broker.process) - before < 64 * MIB
