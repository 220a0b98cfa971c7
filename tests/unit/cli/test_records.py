"""Records in and out by the command line: keys, headers, JSON, templates, where reading begins and ends, groups."""

import json
import os
import pty
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest
from click.testing import CliRunner

from broker_process import BrokerProcess
from korvet_fast.cli import root
from korvet_fast.client.group_member import share_range

KORVET = [sys.executable, "-m", "korvet_fast"]
WITHIN = 120  # seconds
BYTES = {"base64": "/w=="}  # that are not UTF-8


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    settings = ("durability=written", "group.initial.rebalance.delay.ms=0")
    with BrokerProcess(tmp_path_factory.mktemp("records") / "data", *settings) as process:
        yield process


@pytest.fixture
def topic(broker: BrokerProcess) -> str:
    name = f"t{uuid4().hex[:8]}"
    call(broker, "topic", "create", name, "--partitions", "3")
    return name


def call(broker: BrokerProcess, *arguments: str, code: int = 0) -> str:
    result = CliRunner().invoke(root, [*arguments, "--bootstrap", f"kafka://{broker.bootstrap}"])
    assert result.exit_code == code, result.output
    return result.stdout


def produce(broker: BrokerProcess, topic: str, text: bytes, *options: str) -> bytes:
    """What the command said, after it stored the lines."""
    command = [*KORVET, "produce", topic, *options, "--bootstrap", broker.bootstrap]
    done = subprocess.run(command, input=text, capture_output=True, timeout=WITHIN)
    assert done.returncode == 0, done.stderr
    return done.stderr


def read(broker: BrokerProcess, topic: str, *options: str) -> list[str]:
    """The lines of all that is there, in no order."""
    return sorted(call(broker, "consume", topic, "--until-end", *options).splitlines())


def test_keys_and_headers_of_lines(broker: BrokerProcess, topic: str) -> None:
    given = ("--key-separator", ":", "--header", "source=web", "--header", "source=again")
    assert produce(broker, topic, b"a:1:one\nb:\n", *given) == b"2 records stored in topic %s\n" % topic.encode()
    assert read(broker, topic, "--format", r"%k|%K|%s|%S|%h\n") == [
        "a|1|1:one|5|source=web,source=again",
        "b|1||0|source=web,source=again",
    ]
    assert read(broker, topic, "--key-separator", " -> ") == ["a -> 1:one", "b -> "]
    assert read(broker, topic, "--key-separator", r"\t") == ["a\t1:one", "b\t"], "as produce reads it"
    produce(broker, topic, b"c\tthree\n", "--key-separator", r"\t", "--partition", "2")
    assert read(broker, topic, "--partition", "2", "--format", "%t %p %k %s%%\\x0a")[-1] == f"{topic} 2 c three%"


def test_json_goes_in_as_it_comes_out(broker: BrokerProcess, topic: str) -> None:
    rows = [
        {"key": None, "value": "grün", "headers": [["a", "1"], ["a", None]], "partition": 0, "timestamp": 5},
        {
            "key": {"base64": "/w=="},
            "value": None,
            "headers": [["b", {"base64": "/w=="}]],
            "partition": 2,
            "timestamp": 6,
        },
    ]
    text = "\n\n".join(map(json.dumps, rows)) + "\n \n"
    assert produce(broker, topic, text.encode(), "--json").startswith(b"2 records stored")
    lines = call(broker, "consume", topic, "-e", "--json")
    found = [json.loads(line) for line in lines.splitlines()]
    assert [{name: row[name] for name in rows[0]} for row in found] == rows
    call(broker, "topic", "create", f"{topic}-copy", "--partitions", "3")
    produce(broker, f"{topic}-copy", lines.encode(), "--json")
    assert call(broker, "consume", f"{topic}-copy", "-e", "--json") == lines.replace(topic, f"{topic}-copy")


def test_many_json_lines_keep_their_order(broker: BrokerProcess, topic: str) -> None:
    text = b"".join(b'{"key": "k", "value": "%d"}\n' % number for number in range(20_000))
    produce(broker, topic, text, "--json")
    assert call(broker, "consume", topic, "-e").splitlines() == [str(number) for number in range(20_000)]


def test_reading_from_a_time_and_to_the_end(broker: BrokerProcess, topic: str) -> None:
    times = {"old": 1_600_000_000_000, "new": 1_700_000_000_000}
    text = "".join(json.dumps({"value": name, "timestamp": at, "partition": 1}) + "\n" for name, at in times.items())
    produce(broker, topic, text.encode(), "--json")
    assert read(broker, topic) == ["new", "old"]
    assert read(broker, topic, "--from", "2023-01-01T00:00:00Z") == ["new"]
    assert read(broker, topic, "--from", "2024-01-01") == []
    assert read(broker, topic, "--from", "latest") == []
    assert read(broker, topic, "--from", "1") == ["new"]


@pytest.mark.parametrize("more", [(), ("--group", "beyond")])
def test_an_offset_that_is_not_there_yet_is_said(broker: BrokerProcess, topic: str, more: tuple[str, ...]) -> None:
    command = [*KORVET, "consume", topic, "--from", "9999999", *more, "--bootstrap", broker.bootstrap]
    with subprocess.Popen(command, stderr=subprocess.PIPE) as reader:
        assert reader.stderr is not None
        assert b"has offset 9999999 yet, they end at 0 at most: waiting" in reader.stderr.readline()
        reader.send_signal(signal.SIGINT)
        assert reader.wait(WITHIN) == 0


def committed(broker: BrokerProcess, group: str) -> dict[int, int]:
    (found,) = json.loads(call(broker, "group", "describe", group, "--json"))
    return {row["partition"]: row["committed"] for row in found["progress"] if row["committed"] is not None}


def test_a_group_goes_on_where_it_was(broker: BrokerProcess, topic: str) -> None:
    produce(broker, topic, b"1\n2\n3\n4\n", "--partition", "1")
    first = ("consume", topic, "--group", topic, "--from", "earliest")
    assert call(broker, *first, "--count", "3") == "1\n2\n3\n"
    assert committed(broker, topic)[1] == 3
    assert call(broker, "consume", topic, "--group", topic, "-e") == "4\n"
    assert call(broker, *first, "-e") == ""


def start(broker: BrokerProcess, *arguments: str) -> "subprocess.Popen[bytes]":
    command = [*KORVET, *arguments, "--bootstrap", broker.bootstrap]
    return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def test_members_share_the_partitions_and_leave_with_what_they_printed(broker: BrokerProcess, topic: str) -> None:
    readers = [start(broker, "consume", topic, "--group", topic, "--from", "earliest", "-f", "%p\\n") for _ in "ab"]
    deadline = time.monotonic() + WITHIN

    def owners() -> dict[int, str]:
        result = CliRunner().invoke(root, ["group", "describe", topic, "--json", "--bootstrap", broker.bootstrap])
        found = json.loads(result.stdout)[0]["progress"] if result.exit_code == 0 else []
        return {row["partition"]: row["member"] for row in found if row["member"]}

    while len(set(owners().values())) < 2:
        assert time.monotonic() < deadline
        time.sleep(0.2)
    for partition in range(3):
        produce(broker, topic, b"x\n", "--partition", str(partition))
    printed = []
    for reader in readers:
        assert reader.stdout is not None
        printed.append(reader.stdout.readline())
    for reader in readers:
        reader.send_signal(signal.SIGINT)
        rest, complaint = reader.communicate(timeout=WITHIN)
        assert (reader.returncode, complaint) == (0, b"")
        printed += rest.splitlines(keepends=True)
    call(broker, "consume", topic, "--group", topic, "-e")  # whatever nobody had printed yet
    assert committed(broker, topic) == {0: 1, 1: 1, 2: 1}
    assert len(printed) == len(set(printed))


@pytest.mark.parametrize("in_background", [False, True])
def test_sigterm_leaves_the_group_with_what_was_printed(broker: BrokerProcess, topic: str, in_background: bool) -> None:
    """A shell starts what a script puts into the background with Ctrl-C ignored."""
    produce(broker, topic, b"1\n2\n", "--partition", "1")
    command = [*KORVET, "consume", topic, "--group", topic, "--from", "earliest", "--bootstrap", broker.bootstrap]
    ignore = (lambda: signal.signal(signal.SIGINT, signal.SIG_IGN)) if in_background else None
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, preexec_fn=ignore) as reader:
        assert reader.stdout is not None
        assert [reader.stdout.readline() for _ in range(2)] == [b"1\n", b"2\n"]
        reader.send_signal(signal.SIGTERM)
        rest, complaint = reader.communicate(timeout=WITHIN)
        assert (reader.returncode, rest, complaint) == (0, b"", b"")
    assert committed(broker, topic)[1] == 2
    (found,) = json.loads(call(broker, "group", "describe", topic, "--json"))
    assert found["members"] == 0


def test_shares_are_ranges() -> None:
    assert share_range([0, 1, 2, 3, 4], 2) == [[0, 1, 2], [3, 4]]
    assert share_range([0], 3) == [[0], [], []]


def test_a_pipe_that_nobody_reads_ends_it_though_nothing_new_comes(broker: BrokerProcess, topic: str) -> None:
    produce(broker, topic, b"first\n")
    reader = start(broker, "consume", topic, "--from", "earliest")
    assert reader.stdout is not None
    assert reader.stderr is not None
    assert reader.stdout.readline() == b"first\n"
    reader.stdout.close()
    assert reader.wait(WITHIN) == 0
    with reader.stderr as complaints:
        assert complaints.read() == b""


@pytest.mark.parametrize("words", ["consume TOPIC -e", "topic list", "group list --json", "cluster info", "--help"])
def test_a_full_disk_is_said(broker: BrokerProcess, topic: str, words: str) -> None:
    produce(broker, topic, b"first\n")
    where = [] if words == "--help" else ["--bootstrap", broker.bootstrap]
    with Path("/dev/full").open("wb") as full:
        command = [*KORVET, *words.replace("TOPIC", topic).split(), *where]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, timeout=WITHIN)
    assert done.returncode == 1
    assert done.stderr == (
        b"Error: cannot write to standard output: No space left on device; what was printed is not complete.\n"
    )


@pytest.mark.parametrize("words", ["topic list", "config list --json", "--help"])
def test_a_closed_pipe_is_no_error(broker: BrokerProcess, words: str) -> None:
    where = [] if words == "--help" else ["--bootstrap", broker.bootstrap]
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run([*KORVET, *words.split(), *where], stdout=writing, stderr=subprocess.PIPE, timeout=WITHIN)
    os.close(writing)
    assert (done.returncode, done.stderr) == (0, b"")


def test_streams_that_are_closed(broker: BrokerProcess, topic: str) -> None:
    korvet = " ".join(KORVET)
    for command in (
        f"topic list --bootstrap {broker.bootstrap} >&-",
        f"produce {topic} --bootstrap {broker.bootstrap} <&-",
    ):
        done = subprocess.run(["bash", "-c", f"{korvet} {command}"], stderr=subprocess.PIPE, timeout=WITHIN)
        assert done.returncode == 0, done.stderr
        assert b"Traceback" not in done.stderr


def test_ctrl_c_says_how_many_are_stored(broker: BrokerProcess, topic: str) -> None:
    ours, theirs = pty.openpty()
    command = [*KORVET, "produce", topic, "--bootstrap", broker.bootstrap]
    with subprocess.Popen(command, stdin=theirs, stderr=subprocess.PIPE) as writer:
        os.close(theirs)
        assert writer.stderr is not None
        assert writer.stderr.readline() == b"a record on each line; Ctrl-D ends\n"
        os.write(ours, b"one\ntwo\n")
        call(broker, "consume", topic, "--from", "earliest", "--count", "2")  # so both are stored
        writer.send_signal(signal.SIGINT)
        said = writer.stderr.read()
        assert writer.wait(WITHIN) == 1
    os.close(ours)
    assert b"2 records stored in topic %s, the rest was not sent\n" % topic.encode() in said
