"""kill -9 under producers of Kafka 0.7: what a FETCH once showed is never gone or changed, and segments stay."""

import contextlib
import threading
from pathlib import Path

import pytest

from broker_process import BrokerProcess
from korvet_reference.legacy_client import LegacyClient, encode_message
from redis_server import RedisServer, find_program, free_port

KILLS = 3
SEEN = 200_000  # bytes that are read before each kill


def produce(port: int, stop: threading.Event) -> None:
    """Send numbered messages until the broker goes, or the test says so."""
    number = 0
    with contextlib.suppress(OSError), LegacyClient("127.0.0.1", port) as client:
        while not stop.is_set():
            messages = [encode_message(b"%d-" % (number + place) + bytes(150)) for place in range(20)]
            client.produce("clicks", 0, b"".join(messages))
            number += len(messages)


def read(port: int, seen: bytearray, most: int) -> None:
    """Read on behind what was seen, until there are `most` bytes."""
    with LegacyClient("127.0.0.1", port) as client:
        while len(seen) < most:
            seen += client.fetch("clicks", 0, len(seen))


@pytest.mark.parametrize("store", ["files", "redis"])
def test_what_was_shown_stays(tmp_path: Path, store: str) -> None:
    port = free_port()
    arguments = ("--listen", f"legacy://127.0.0.1:{port}")
    with contextlib.ExitStack() as stack:
        url = None
        if store == "redis":
            url = stack.enter_context(RedisServer(find_program("redis-server"), tmp_path / "redis")).url
        broker = BrokerProcess(tmp_path / "data", "log.segment.bytes=65536", store=url, arguments=arguments)
        seen = bytearray()
        for kill in range(KILLS):
            broker.start()
            stop = threading.Event()
            producers = [threading.Thread(target=produce, args=(port, stop)) for _ in range(3)]
            for producer in producers:
                producer.start()
            read(port, seen, (kill + 1) * SEEN)
            broker.kill()
            stop.set()
            for producer in producers:
                producer.join()
        broker.start()
        again = bytearray()
        read(port, again, len(seen))
        assert again[: len(seen)] == seen
        with LegacyClient("127.0.0.1", port) as client:
            edges = client.offsets("clicks", 0, -1, 1000)
        assert edges[-1] == 0
        assert len(edges) > 3
        broker.stop()
        broker.start()
        with LegacyClient("127.0.0.1", port) as client:
            assert client.offsets("clicks", 0, -1, 1000) == edges
        broker.stop()
