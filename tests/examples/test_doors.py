"""The examples of the text protocol and of Kafka 0.7, as their READMEs say to run them."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from broker_process import BrokerProcess
from redis_server import free_port
from text_client import TextClient

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture
def ports() -> dict[str, int]:
    return {scheme: free_port() for scheme in ("text", "legacy")}


@pytest.fixture
def broker(tmp_path: Path, ports: dict[str, int]) -> Iterator[BrokerProcess]:
    listeners = [word for scheme, port in ports.items() for word in ("--listen", f"{scheme}://127.0.0.1:{port}")]
    with BrokerProcess(tmp_path / "data", arguments=listeners) as broker:
        yield broker


def run(*command: str) -> list[str]:
    done = subprocess.run(command, capture_output=True, text=True, timeout=250, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.splitlines()


def test_the_worker_does_each_order_once(broker: BrokerProcess, ports: dict[str, int]) -> None:
    worker = (str(EXAMPLES / "text_lines" / "worker.sh"), "127.0.0.1", str(ports["text"]))
    client = TextClient(ports["text"])
    for number, order in enumerate(("1 widget", "50% off, 2 | 3 gadgets")):
        assert "|OK|" in client.ask(f"V1|{number}|PRODUCE|orders a:{order} acks=all")
    assert run(*worker) == ["partition 0, order 0: 1 widget", "partition 0, order 1: 50% off, 2 | 3 gadgets"]
    assert run(*worker) == []
    assert "|OK|" in client.ask("V1|9|PRODUCE|orders a:last acks=all")
    assert run(*worker) == ["partition 0, order 2: last"]
    client.socket.close()


def test_what_0_7_writes_is_read_by_clients_of_today(broker: BrokerProcess, ports: dict[str, int]) -> None:
    program = str(EXAMPLES / "kafka_07" / "migrate.py")
    printed = run(sys.executable, program, f"legacy://127.0.0.1:{ports['legacy']}", broker.bootstrap)
    size = 4 + 6 + len("click 0")  # LENGTH, magic, attributes, checksum and the payload
    assert printed == [f"{number * size} click {number}" for number in range(5)]
