"""A broker with a listener of Kafka 0.7 and one of Kafka's, over each store, and a topic that only 0.7 could write."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from broker_process import BrokerProcess
from korvet_reference import compression
from korvet_reference.legacy_client import LegacyClient, encode_message
from redis_server import RedisServer, find_program, free_port

PATIENCE = 60.0
STORES = ("files", "redis")
VALUES = [b"value %d" % number for number in range(40)]

Values = list[tuple[int, bytes]]  # offset, value


class TwoListeners:
    """A broker with both listeners. `port`: where clients of 0.7 connect; `bootstrap`: where those of today do."""

    def __init__(self, process: BrokerProcess, port: int) -> None:
        self.process = process
        self.bootstrap = process.bootstrap
        self.port = port

    def old(self) -> LegacyClient:
        return LegacyClient("127.0.0.1", self.port, PATIENCE)


@contextmanager
def open_two_listeners(store: str, directory: Path, *settings: str) -> Iterator[TwoListeners]:
    """One of STORES."""
    port = free_port()
    arguments = ("--listen", f"legacy://127.0.0.1:{port}")
    if store == "files":
        with BrokerProcess(directory / "data", *settings, arguments=arguments) as process:
            yield TwoListeners(process, port)
        return
    with (
        RedisServer(find_program("redis-server"), directory / "redis") as server,
        BrokerProcess(directory / "unused", *settings, store=server.url, arguments=arguments) as process,
    ):
        yield TwoListeners(process, port)


def write_old(broker: TwoListeners, topic: str, partition: int = 0) -> Values:
    """Single messages, then wrappers; the offset that each has for clients of today."""
    wanted: Values = []
    with broker.old() as client:
        (at,) = client.offsets(topic, partition)
        for number, value in enumerate(VALUES):
            message = encode_message(value, magic=number % 2)
            wanted.append((at, value))
            client.produce(topic, partition, message)
            at += len(message)
        for codec in (1, 2):
            inner = b"".join(encode_message(value) for value in VALUES)
            message = encode_message(compression.compress(codec, inner), codec)
            wanted += [(at + place, value) for place, value in enumerate(VALUES)]
            client.produce(topic, partition, message)
            at += len(message)
        assert client.offsets(topic, partition) == [at]
    return wanted
