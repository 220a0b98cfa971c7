"""A topic of Kafka 0.7 that is just being made, by several connections at once; on both stores."""

import struct
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from broker_process import BrokerProcess
from faults.redis.log import wait_for_line
from korvet_reference.legacy_client import (
    MULTIPRODUCE,
    FetchError,
    LegacyClient,
    encode_message,
    encode_request,
    produce_body,
)
from legacy_broker import LegacyBroker
from legacy_vectors import HELLO
from redis_server import free_port

CONNECTIONS, TOPICS = 8, 15


def test_all_that_produce_to_a_new_topic_at_once_are_stored(legacy: LegacyBroker) -> None:
    topics = [legacy.topic() for _ in range(TOPICS)]
    start, failures = threading.Barrier(CONNECTIONS), []

    def produce() -> None:
        with legacy.connect() as client:
            for topic in topics:
                start.wait(60)
                try:
                    client.produce(topic, 0, HELLO)
                    client.offsets(topic, 0)
                except OSError as error:
                    failures.append((topic, error))
                    start.abort()
                    return

    threads = [threading.Thread(target=produce) for _ in range(CONNECTIONS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    with legacy.connect() as client:
        assert [client.offsets(topic, 0) for topic in topics] == [[CONNECTIONS * len(HELLO)]] * TOPICS


def test_a_new_topic_is_read_while_another_makes_it(legacy: LegacyBroker) -> None:
    topics = [legacy.topic() for _ in range(TOPICS)]
    wrong: list[tuple[str, object]] = []
    ending = threading.Event()

    def read() -> None:
        with legacy.connect() as client:
            while not ending.is_set():
                for topic in topics:
                    try:
                        if client.fetch(topic, 0, 0) not in (b"", HELLO):
                            wrong.append((topic, "bytes"))
                        client.offsets(topic, 1)
                    except (FetchError, OSError) as error:
                        wrong.append((topic, error))
                        return

    readers = [threading.Thread(target=read) for _ in range(3)]
    for reader in readers:
        reader.start()
    with legacy.connect() as client:
        for topic in topics:
            client.produce(topic, 0, HELLO)
        assert client.fetch(topics[-1], 0, 0) == HELLO
    ending.set()
    for reader in readers:
        reader.join()
    assert wrong == []


@pytest.fixture
def slow(tmp_path: Path) -> Iterator[LegacyBroker]:
    """A broker where one partition is made at a time, ten a second."""
    port = free_port()
    settings = ("controller.mutation.rate=10", "controller.mutation.burst=1", "num.partitions=1")
    arguments = ("--listen", f"legacy://127.0.0.1:{port}")
    with BrokerProcess(tmp_path / "data", *settings, arguments=arguments) as process:
        yield LegacyBroker(process, port)


def test_who_makes_topics_too_fast_waits_and_loses_nothing(slow: LegacyBroker) -> None:
    def produce(client: LegacyClient, topics: list[str]) -> None:
        for topic in topics:
            client.produce(topic, 0, HELLO)

    topics = [f"t{number}" for number in range(12)]
    with slow.connect() as first, slow.connect() as second:
        produce(first, topics)
        produce(second, topics)
        for client in (first, second):
            client.offsets(topics[-1], 0)
        assert [first.offsets(topic, 0) for topic in topics] == [[2 * len(HELLO)]] * len(topics)


def test_who_waits_for_new_topics_makes_room_for_others(tmp_path: Path) -> None:
    """Frames of a quarter of a MiB, three MiB of them, that would wait for many minutes; then one of somebody else."""
    port, size = free_port(), 250 << 10
    settings = ("controller.mutation.rate=1", "controller.mutation.burst=1", "queued.max.request.bytes=4194304")
    arguments = ("--listen", f"legacy://127.0.0.1:{port}")
    large = encode_message(bytes(200 << 10))
    with BrokerProcess(tmp_path / "data", *settings, arguments=arguments) as process, ExitStack() as stack:
        legacy = LegacyBroker(process, port)
        with legacy.connect() as witness:
            witness.produce("known", 0, HELLO)
            assert witness.fetch("known", 0, 0) == HELLO
            for number in range(24):
                bodies = b"".join(produce_body(f"new-{number}-{place}", 0, HELLO) for place in range(100))
                body = struct.pack(">h", 100) + bodies
                client = stack.enter_context(legacy.connect())
                client.socket.sendall(encode_request(MULTIPRODUCE, body.ljust(size, b"x")))
            witness.produce("known", 0, large)
            assert witness.offsets("known", 0) == [len(HELLO) + len(large)]
            wait_for_line(process, "memory is short")
        process.kill()  # those that are left have ten seconds after they have gone
