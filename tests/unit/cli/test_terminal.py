"""Names and records of strangers on a terminal: what it would obey, or take for another line, is shown and not sent."""

import contextlib
import json
import logging
import os
import pty
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from broker_process import BrokerProcess
from kafka_server import JOIN_GROUP, METADATA, OFFSET_COMMIT, RawClient, make_batch, run
from korvet_fast.cli.log import Human
from korvet_fast.printable import printable, to_json
from raw_connection import connect

KORVET = [sys.executable, "-m", "korvet_fast"]
CLEAR = "\x1b[2J"
FORGED = "\x9b2J\n12:00:00 info     ready kafka://203.0.113.9:9092 store=file:/elsewhere"
NAMES = (
    "[/nothing]",
    "[red]alarm[/red]",
    ":warning:",
    f"clears{CLEAR}",
    "turned\u202eround",
    "c1\x9b2J",
    "two\tcells\nor rows",
)
TOPIC = "terminal"


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    with BrokerProcess(tmp_path_factory.mktemp("terminal") / "data", "durability=written") as process:
        talk(process.port, prepare)
        yield process


def talk(port: int, work: Callable[[RawClient], Any]) -> None:
    async def scenario() -> None:
        async with connect(port) as client:
            await work(client)

    run(scenario)


async def prepare(client: RawClient) -> None:
    """A topic, and groups of all these names that have committed there."""
    await client.create(TOPIC)
    await client.ask(METADATA, 9, topics=[{"name": TOPIC}])
    for name in NAMES:
        row = {"partition_index": 0, "committed_offset": 0, "committed_metadata": CLEAR}
        topics = [{"name": TOPIC, "partitions": [row]}]
        answer = await client.ask(OFFSET_COMMIT, 8, group_id=name, generation_id_or_member_epoch=-1, topics=topics)
        assert answer["topics"][0]["partitions"][0]["error_code"] == 0


class Screen:
    """A terminal 400 columns wide, for one process or several; `text` is all that was sent to it."""

    def __init__(self) -> None:
        self._ours, self.theirs = pty.openpty()
        self.sent = b""
        self._reading = threading.Thread(target=self._read)
        self._reading.start()

    def _read(self) -> None:
        with contextlib.suppress(OSError):  # EIO: nobody has the other side any more
            while piece := os.read(self._ours, 10_000):
                self.sent += piece

    def ended(self) -> str:
        """All that was sent; the processes must be over."""
        os.close(self.theirs)
        self._reading.join(120)
        os.close(self._ours)
        return self.sent.decode()

    @property
    def lines(self) -> list[str]:
        return self.sent.decode().split("\r\n")


def on_terminal(broker: BrokerProcess, *arguments: str) -> tuple[int, str]:
    """Exit code, and what a terminal got that is standard output and error."""
    screen = Screen()
    environment = os.environ | {"TERM": "xterm", "COLUMNS": "400", "NO_COLOR": "1"}
    command = [*KORVET, *arguments, "--bootstrap", broker.bootstrap]
    done = subprocess.run(command, stdout=screen.theirs, stderr=screen.theirs, env=environment, timeout=120)
    return done.returncode, screen.ended()


def controls(text: str) -> set[str]:
    """The control characters in a terminal's text, but for the ends of lines and rich's own bold titles."""
    rest = text.replace("\r\n", "").replace("\x1b[1m", "").replace("\x1b[0m", "")
    return {letter for letter in rest if not letter.isprintable()}


def test_finding_4_1_groups_of_any_name_are_listed_on_a_terminal(broker: BrokerProcess) -> None:
    code, text = on_terminal(broker, "group", "list")
    assert code == 0, text
    assert controls(text) == set()
    for shown in ("[/nothing]", "[red]alarm[/red]", ":warning:", r"clears\x1b[2J", r"turned\u202eround", r"c1\x9b2J"):
        assert shown in text
    assert len(text.splitlines()) == 1 + len(NAMES)


def test_finding_4_1_a_group_of_any_name_is_described_on_a_terminal(broker: BrokerProcess) -> None:
    for name in NAMES:
        code, text = on_terminal(broker, "group", "describe", name)
        assert (code, controls(text)) == (0, set()), text
        assert printable(name) in text


def test_finding_4_1_an_error_that_repeats_a_name_is_printable(broker: BrokerProcess) -> None:
    code, text = on_terminal(broker, "topic", "describe", f"none{CLEAR}")
    assert (code, controls(text)) == (1, set())
    code, text = on_terminal(broker, "group", "delete", f"clears{CLEAR}", "nobody\x9b2J")
    assert (code, controls(text)) == (1, set())
    assert r"deleted group clears\x1b[2J" in text
    talk(broker.port, prepare)


def test_finding_4_1_rows_for_programs_have_their_columns_and_json_its_values(broker: BrokerProcess) -> None:
    command = [*KORVET, "group", "list", "--bootstrap", broker.bootstrap]
    rows = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert {len(row.split("\t")) for row in rows.rstrip("\n").split("\n")} == {4}
    found = subprocess.run([*command, "--json"], capture_output=True, text=True, check=True).stdout
    assert {row["group"] for row in json.loads(found)} == set(NAMES)
    assert controls(found.replace("\n", "")) == set()


def test_finding_4_1_values_are_shown_on_a_terminal_and_untouched_in_a_pipe(broker: BrokerProcess) -> None:
    values = [
        f"{CLEAR}gone".encode(),
        b"\xff\xfe\x00",
        "grün 日本 \U0001f600".encode(),
        b"one\nand two",
        b"\xc2\x9b2J",
        b"a\\x1b",
    ]

    async def write(client: RawClient) -> None:
        await client.create("values")
        await client.produce("values", make_batch(*values))

    talk(broker.port, write)
    reading = ("consume", "values", "--from", "earliest", "--count", str(len(values)))
    code, text = on_terminal(broker, *reading)
    assert code == 0, text
    shown = [r"\x1b[2Jgone", r"\xff\xfe\x00", "grün 日本 \U0001f600", r"one\nand two", r"\x9b2J", r"a\x1b"]
    assert text.split("\r\n") == [*shown, ""]
    code, text = on_terminal(broker, *reading, "--json")
    assert (code, controls(text)) == (0, set())
    assert [json.loads(line)["value"] for line in text.splitlines()][::2] == [values[at].decode() for at in (0, 2, 4)]
    piped = subprocess.run([*KORVET, *reading, "--bootstrap", broker.bootstrap], capture_output=True, timeout=120)
    assert (piped.returncode, piped.stdout) == (0, b"\n".join(values) + b"\n")


def forge(log: Callable[[], list[str]], stop: Callable[[int], None], port: int) -> None:
    """Have the broker log the id of a group: it stands still, and so looks after the members too late."""

    async def join(client: RawClient) -> None:
        who = {"group_id": f"g{CLEAR}{FORGED}", "session_timeout_ms": 300, "rebalance_timeout_ms": 300, "member_id": ""}
        protocols = [{"name": "range", "metadata": b""}]
        await client.ask(JOIN_GROUP, 3, **who, protocol_type="consumer", protocols=protocols)
        stop(signal.SIGSTOP)
        time.sleep(2.0)
        stop(signal.SIGCONT)

    deadline = time.monotonic() + 240
    while not any("stood still" in line for line in log()):
        assert time.monotonic() < deadline, log()
        talk(port, join)  # again, where the machine was so busy that the member had gone before
        told = time.monotonic() + 20
        while time.monotonic() < told and not any("stood still" in line for line in log()):
            time.sleep(0.05)


QUICK = ("group.initial.rebalance.delay.ms=0", "group.min.session.timeout.ms=100")


def test_finding_4_1_no_name_forges_a_line_of_the_log_on_a_terminal(tmp_path: Path) -> None:
    screen = Screen()
    settings = [word for setting in QUICK for word in ("--set", setting)]
    command = [*KORVET, "serve", "--store", f"file:{tmp_path / 'data'}", "--listen", "kafka://127.0.0.1:0", *settings]
    with subprocess.Popen(command, stderr=screen.theirs) as serving:
        while "ready kafka://" not in screen.lines[0] or len(screen.lines) < 2:
            assert serving.poll() is None, screen.sent
            time.sleep(0.05)
        forge(lambda: screen.lines, serving.send_signal, int(screen.lines[0].split("127.0.0.1:")[1].split()[0]))
        serving.terminate()
        assert serving.wait(120) == 0
    text = screen.ended()
    assert controls(text) == set()
    assert [line for line in text.splitlines() if line[9:].startswith("info     ready")] == text.splitlines()[:1]


def test_finding_4_1_no_name_forges_a_line_of_the_log_in_json(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path / "data", *QUICK) as broker:
        forge(lambda: broker.log, lambda number: os.kill(broker.pid, number), broker.port)
        (line,) = (line for line in broker.log if "stood still" in line)
        assert line.rstrip("\n").isprintable()
        assert printable(f"g{CLEAR}{FORGED}") in json.loads(line)["message"]
        assert (
            sum("ready kafka://" in json.loads(line)["message"] for line in broker.log) == 2
        )  # one was forged, inside


def test_a_traceback_stands_below_its_line_and_cannot_be_taken_for_one() -> None:
    try:
        raise ValueError(f"boom{CLEAR}{FORGED}")
    except ValueError:
        record = logging.LogRecord("korvet_fast", logging.ERROR, "", 0, f"it failed{FORGED}", (), sys.exc_info())
    first, *others = Human().format(record).split("\n")
    assert first.endswith(f" error    it failed{printable(FORGED)}")
    assert all(line.startswith("    ") and line.isprintable() for line in others)
    assert any(line.startswith(r"    ValueError: boom\x1b[2J\x9b2J") for line in others)


def test_one_line_of_letters() -> None:
    text = "a\x00\r\n\t\x1b\x7f\x85\x9b\xa0\xad\u200b\u2028\u202e\ufeff\ud800\U000e0001 z"
    assert printable(text).isprintable()
    assert printable("plain \\ grün 日本 \U0001f600") == "plain \\ grün 日本 \U0001f600"
    assert printable("\x1b\n\u202e") == r"\x1b\n\u202e"
    for value in (text, {text: [text]}, "plain", None, [1, {"a": 2}]):
        for indent in (None, 2):
            written = to_json(value, indent)
            assert json.loads(written) == value
            assert written.replace("\n", "" if indent else "\n").isprintable()
