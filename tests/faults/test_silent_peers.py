"""Peers that take no answers, are gone without a word, or send nothing (reliability F26, F27, F28), beside a load.

The load's history is held against the log: nobody else loses anything, and the broker lets go of the silent ones.
"""

import os
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import psutil
import pytest

from broker_process import BrokerProcess
from faults.redis.load import at_work
from kafka_messages import CATALOG
from kafka_server import FETCH, METADATA, frame, make_batch, run
from raw_connection import connect
from requirement import missing

PATIENCE = 280.0  # seconds
TCP_REPAIR = 19  # linux/tcp.h: a socket under repair is closed without FIN or RST
RECORD, RECORDS = 1_000_000, 8
DEAF, ASKED = 20, 10  # peers, and answers of 8 MB that each of them asks for
ROOM = 32 << 20  # bytes of requests and answers that the broker may hold
GONE = 40
SILENT = 3_000


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[BrokerProcess]:
    settings = (f"queued.max.request.bytes={ROOM}", "connections.max.idle.ms=4000")
    with BrokerProcess(tmp_path / "data", *settings) as running:
        yield running


def count_sockets(broker: BrokerProcess, ports: set[int]) -> int:
    """How many connections from these ports of ours the broker still has."""
    found = psutil.Process(broker.pid).net_connections("tcp")
    return sum(bool(one.raddr) and one.raddr.port in ports for one in found)


def own_memory(broker: BrokerProcess) -> int:
    """Bytes that the process has for itself: files that it maps do not count."""
    memory = psutil.Process(broker.pid).memory_info()
    return int(memory.rss - memory.shared)


def wait_until(met: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + PATIENCE
    while not met():
        assert time.monotonic() < deadline, what
        time.sleep(0.1)


def request(key: int, version: int, **values: object) -> bytes:
    head = {"api_key": key, "api_version": version, "correlation_id": 1, "client_id": "silent"}
    return frame(CATALOG[key].request.encode(head | values, version))


def stop_well(broker: BrokerProcess) -> None:
    assert broker.stop() == 0
    assert "Traceback" not in "".join(broker.log)


def test_peers_that_take_no_answers(broker: BrokerProcess) -> None:
    """F26: what waits for them is bounded, and in the end they are closed."""

    async def fill() -> None:
        async with connect(broker.port) as client:
            await client.create("large")
            for _ in range(RECORDS):
                assert (await client.produce("large", make_batch(os.urandom(RECORD // 2) * 2)))["error_code"] == 0

    run(fill)
    with at_work(broker) as load, ExitStack() as stack:
        before, ports = own_memory(broker), set[int]()
        place = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": RECORD * RECORDS}
        asked = request(FETCH, 11, max_bytes=RECORD * RECORDS, topics=[{"topic": "large", "partitions": [place]}])
        for _ in range(DEAF):
            peer = stack.enter_context(socket.create_connection(("127.0.0.1", broker.port), 60))
            peer.sendall(asked * ASKED)
            ports.add(peer.getsockname()[1])
        most = before
        load.wait_for(50)

        def all_closed() -> bool:
            nonlocal most
            most = max(most, own_memory(broker))
            return not count_sockets(broker, ports)

        wait_until(all_closed, "peers that take nothing are still connected")
    assert most - before < 2 * ROOM, f"{most - before:,} bytes more"
    stop_well(broker)


def test_peers_that_are_gone_without_a_word(broker: BrokerProcess) -> None:
    """F27: no FIN and no RST comes, as where a machine has lost its power. Their connections end all the same."""
    with at_work(broker):
        ports = set[int]()
        for _ in range(GONE):
            peer = socket.create_connection(("127.0.0.1", broker.port), 60)
            peer.sendall(request(METADATA, 1, topics=[]))
            assert peer.recv(4, socket.MSG_WAITALL)
            ports.add(peer.getsockname()[1])
            try:
                peer.setsockopt(socket.IPPROTO_TCP, TCP_REPAIR, 1)
            except PermissionError:
                missing("only root may close a socket without a word (TCP_REPAIR)")
            peer.close()
        assert count_sockets(broker, ports) > 0, "the broker has heard of their end"
        wait_until(lambda: not count_sockets(broker, ports), "peers that are gone are still connected")
    stop_well(broker)


def test_a_flood_of_peers_that_send_nothing(broker: BrokerProcess) -> None:
    """F28: who is inside goes on, newcomers get in, and the silent ones are closed."""
    with at_work(broker) as load, ExitStack() as stack:
        ports = set[int]()
        for _ in range(SILENT):
            peer = stack.enter_context(socket.create_connection(("127.0.0.1", broker.port), 60))
            ports.add(peer.getsockname()[1])
        load.wait_for(50)
        load.add_writer("late")
        load.wait_for(20)
        wait_until(lambda: not count_sockets(broker, ports), "peers that send nothing are still connected")
    stop_well(broker)
