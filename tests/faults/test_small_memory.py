"""Little memory for the broker, by a control group (reliability F37), and peers that want all of it, beside a load.

A budget that fits is kept. Where none fits, the kernel kills the broker, and what was acknowledged is there.
"""

import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest

from broker_process import BrokerProcess
from faults.cgroup import ControlGroup, open_cgroup
from faults.redis.load import Load, create_topic

MIB = 1 << 20
PEERS, SENT = 30, 4 * MIB  # each sends so many bytes of a request, and never the last one
BUDGET = 16 * MIB
PLENTY = 4096 * MIB


@pytest.fixture
def memory() -> Iterator[ControlGroup]:
    with open_cgroup("memory") as group:
        yield group


@contextmanager
def flood(broker: BrokerProcess) -> Iterator[None]:
    """Requests of which the last byte is missing, until the block ends. The broker may close them, or die."""
    with ExitStack() as stack:
        peers = [stack.enter_context(socket.create_connection(("127.0.0.1", broker.port))) for _ in range(PEERS)]
        for peer in peers:
            thread = threading.Thread(target=send_most, args=(peer,))
            thread.start()
            stack.callback(thread.join)
            stack.callback(end, peer)
        yield


def send_most(peer: socket.socket) -> None:
    with suppress(OSError):  # it may be closed at any time
        peer.sendall((SENT + 1).to_bytes(4, "big") + bytes(SENT))  # returns when the broker takes that


def end(peer: socket.socket) -> None:
    """Also for the thread that sends."""
    with suppress(OSError):  # closed already
        peer.shutdown(socket.SHUT_RDWR)


def test_peers_get_no_more_than_the_budget(tmp_path: Path, memory: ControlGroup) -> None:
    setting = f"queued.max.request.bytes={BUDGET}"
    with BrokerProcess(tmp_path / "data", setting, before=memory.before) as broker:
        create_topic(broker.bootstrap, "load", 2)
        load = Load(broker.bootstrap)
        with load.running():
            load.wait_for(50)
            memory.limit_memory(memory.used + 2 * BUDGET + 8 * MIB)
            with flood(broker):
                load.wait_for(100)
            load.wait_for(50)
        assert memory.killed == 0
        assert load.check(broker.port) == set()
        stop_well(broker)


def test_a_broker_that_is_killed_for_its_memory_loses_nothing(tmp_path: Path, memory: ControlGroup) -> None:
    """The same peers, and a budget that is larger than the memory."""
    with BrokerProcess(tmp_path / "data", before=memory.before) as broker:
        create_topic(broker.bootstrap, "load", 2)
        load = Load(broker.bootstrap)
        with load.running():
            load.wait_for(50)
            memory.limit_memory(memory.used + 2 * BUDGET + 8 * MIB)
            assert broker.process is not None
            with flood(broker):
                assert broker.process.wait(240) == -signal.SIGKILL
            assert memory.killed > 0
            broker.stop()
            memory.limit_memory(PLENTY)
            broker.start()
            load.wait_for(50)
        assert load.check(broker.port) == set()
        stop_well(broker)


def stop_well(broker: BrokerProcess) -> None:
    assert broker.stop() == 0
    assert "Traceback" not in "".join(broker.log)
