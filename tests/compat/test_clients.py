"""Unmodified clients: what each sends, each brings back. One table of scenarios x clients, over every store."""

from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from uuid import uuid4

import pytest

from broker_process import BrokerProcess
from compat import client_aiokafka, client_confluent, client_kafka_python, client_kcat
from compat.record import FORMS, Record
from korvet_fast._native import headers
from redis_server import PROGRAMS, RedisServer, find_program

CLIENTS = [client_confluent, client_kafka_python, client_aiokafka, client_kcat]
COMPRESSIONS = ["none", "gzip", "snappy", "lz4", "zstd"]

# kcat's input is text in lines cut by separators, and its -Z makes every empty value null.
TEXT_FORMS = [
    Record(b"key", b"value"),
    Record(None, b"no key"),
    Record(b"headed", b"v", (("source", b"web"), ("source", b"again"))),
    Record(b"large", b"x" * 70_000),
]

STORES = {"embedded": "", "entries": PROGRAMS[0], "batches": PROGRAMS[1]}  # a layout on Redis: on which server

every_client = pytest.mark.parametrize("client", CLIENTS, ids=lambda c: c.name)


# kafka-python refuses to send a null header value (it reads them).
BYTE_HEADERS = [r._replace(headers=tuple(h for h in r.headers if h[1] is not None)) for r in FORMS]


def forms(client: ModuleType) -> list[Record]:
    return {client_kcat: TEXT_FORMS, client_kafka_python: BYTE_HEADERS}.get(client, FORMS)


@pytest.fixture(scope="module", params=STORES)
def store(request: pytest.FixtureRequest) -> str:
    """Where the broker keeps records: "embedded", or the layout on Redis."""
    return str(request.param)


@pytest.fixture(scope="module")
def redis(store: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer | None]:
    """The Redis server of the store, if it is on one."""
    if store == "embedded":
        yield None
        return
    with RedisServer(find_program(STORES[store]), tmp_path_factory.mktemp("redis"), appendonly="yes") as server:
        yield server


@pytest.fixture(scope="module")
def broker(store: str, redis: RedisServer | None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    data = tmp_path_factory.mktemp("broker") / "data"
    settings = ["num.partitions=4"] + ([f"storage.layout={store}"] if redis else [])
    with BrokerProcess(data, *settings, store=redis.url if redis else None) as running:
        yield running


def batches_at_rest(broker: BrokerProcess, redis: RedisServer | None, topic: str) -> bytes:
    """Partition 0 as it is kept, where it is kept in batches."""
    if redis is None:
        return (Path(broker.store.removeprefix("file:")) / f"{topic}-0" / f"{0:020}.log").read_bytes()
    return b"".join(fields[1] for _, fields in redis.call("XRANGE", f"korvet:{topic}:0", "-", "+"))


@pytest.fixture
def topic() -> str:
    return f"t-{uuid4().hex[:12]}"


@every_client
@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_every_form_in_every_compression(
    broker: BrokerProcess, redis: RedisServer | None, store: str, client: ModuleType, topic: str, compression: str
) -> None:
    records = forms(client)
    client.produce(broker.bootstrap, topic, records, acks="all", compression=compression, idempotent=False)
    if store != "entries":
        found = {batch.compression for batch in headers(batches_at_rest(broker, redis, topic), True)}
        # Clients leave a batch as it is if compression makes it larger; the one with the large record they do not.
        assert COMPRESSIONS.index(compression) in found <= {0, COMPRESSIONS.index(compression)}
    reader = client if client is not client_kcat else client_confluent
    assert reader.consume(broker.bootstrap, topic, len(records)) == records


@every_client
@pytest.mark.parametrize("acks", ["0", "1", "all"])
def test_every_level_of_acks(broker: BrokerProcess, client: ModuleType, topic: str, acks: str) -> None:
    client.produce(broker.bootstrap, topic, [Record(b"k", b"first")], acks="all", compression="none", idempotent=False)
    client.produce(broker.bootstrap, topic, [Record(b"k", b"second")], acks=acks, compression="none", idempotent=False)
    assert client.consume(broker.bootstrap, topic, 2) == [Record(b"k", b"first"), Record(b"k", b"second")]


@every_client
def test_idempotent(broker: BrokerProcess, client: ModuleType, topic: str) -> None:
    records = [Record(b"k", b"%d" % n) for n in range(500)]
    client.produce(broker.bootstrap, topic, records, acks="all", compression="none", idempotent=True)
    assert client.consume(broker.bootstrap, topic, 500) == records


def test_kcat_sends_tombstones(broker: BrokerProcess, topic: str) -> None:
    gone = [Record(b"gone", None)]
    client_kcat.produce(broker.bootstrap, topic, gone, acks="all", compression="none", idempotent=False)
    assert client_kcat.consume(broker.bootstrap, topic, 1) == gone


@pytest.mark.parametrize("reader", CLIENTS, ids=lambda c: c.name)
@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_each_reads_what_another_wrote(broker: BrokerProcess, reader: ModuleType, topic: str, compression: str) -> None:
    client_confluent.produce(broker.bootstrap, topic, TEXT_FORMS, acks="all", compression=compression, idempotent=True)
    assert reader.consume(broker.bootstrap, topic, len(TEXT_FORMS)) == TEXT_FORMS
