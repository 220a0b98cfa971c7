"""Quotas as others set and feel them: Kafka's script, franz-go, librdkafka, Java; the same requests at Apache Kafka."""

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from broker_process import BrokerProcess
from compat.client import open_client
from compat.drivers import DriverError
from compat.java_tools import PERFORMANCE, STORES, Tools, open_broker
from faults.producer_brokers import SmallKafka
from kafka_server import (
    ALTER_CLIENT_QUOTAS,
    CREATE_TOPICS,
    DESCRIBE_CLIENT_QUOTAS,
    RawClient,
    error_of,
    kafka_server,
    make_batch,
)

PATIENCE: Final = 60.0  # seconds
pytestmark = pytest.mark.timeout(300)


@pytest.fixture(params=STORES)
def tools(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Tools]:
    with open_broker(request.param, tmp_path) as broker:
        yield Tools(broker)


def test_kafka_configs_sets_shows_and_removes_quotas(tools: Tools) -> None:
    ann, app = ("--entity-type", "users", "--entity-name", "ann"), ("--entity-type", "clients")
    both = (*ann, *app, "--entity-name", "app")
    tools.configs("--alter", *ann, "--add-config", "producer_byte_rate=1024,consumer_byte_rate=2048")
    tools.configs("--alter", *app, "--entity-default", "--add-config", "request_percentage=12.5")
    tools.configs("--alter", *both, "--add-config", "controller_mutation_rate=3")
    said = tools.configs("--describe", *ann)
    assert "Quota configs for user-principal 'ann' are " in said
    assert "producer_byte_rate=1024" in said
    assert "consumer_byte_rate=2048" in said
    assert "request_percentage=12.5" in tools.configs("--describe", *app, "--entity-default")
    assert "client-id 'app' are controller_mutation_rate=3" in tools.configs("--describe", *both)
    tools.configs("--alter", *ann, "--delete-config", "producer_byte_rate")
    said = tools.configs("--describe", *ann)
    assert "producer_byte_rate" not in said
    assert "consumer_byte_rate=2048" in said
    assert "Quota configs for the default client-id" in tools.configs("--describe", *app)


def test_franz_go_sets_and_reads_quotas(tools: Tools) -> None:
    quotas = {"producer_byte_rate": 1000, "request_percentage": 0.5}
    with open_client("franz_go", tools.broker.bootstrap) as client:
        assert client.ask("set_quota", user="ann", quotas=quotas) == {"quotas": quotas}
        with pytest.raises(DriverError, match="INVALID_REQUEST"):
            client.ask("set_quota", user="ann", quotas={"producer_byte_rate": -1})


def test_javas_producer_is_slowed_down_and_loses_nothing(tools: Tools) -> None:
    tools.configs("--alter", "--entity-type", "users", "--entity-default", "--add-config", "producer_byte_rate=10000")
    tools.topics("--create", "--topic", "t", "--partitions", "1")
    # Ten seconds' worth are a burst; the rest is throttled for ten seconds more: even a busy machine sends it in less
    # time than the rate allows.
    arguments = ("--topic", "t", "--num-records", "200", "--record-size", "1000", "--throughput", "-1")
    said = tools.run(
        PERFORMANCE, *arguments, "--print-metrics", "--producer-props", f"bootstrap.servers={tools.broker.bootstrap}"
    )
    throttled = [float(line.rpartition(":")[2]) for line in said.splitlines() if "produce-throttle-time-max" in line]
    assert max(throttled) >= 100  # milliseconds: what one request of 16 KB is more than the rate
    assert tools.offsets("t", "-1") == ["t:0:200"]


def test_librdkafka_is_told_and_waits(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path / "data") as broker:
        told: dict[str, list[float]] = {"producer": [], "consumer": []}
        producer = Producer(
            {
                "bootstrap.servers": broker.bootstrap,
                "client.id": "app",
                "throttle_cb": lambda event: told["producer"].append(event.throttle_time),
            }
        )
        asyncio.run(set_quota(broker.bootstrap, producer_byte_rate=50_000.0, consumer_byte_rate=50_000.0))
        sent, until = 0, time.monotonic() + PATIENCE
        while max(told["producer"], default=0.0) < 0.1:  # seconds: each value takes 2 of the rate
            assert time.monotonic() < until, "the machine is slower than the rate"
            producer.produce("t", bytes(100_000))
            assert producer.flush(PATIENCE) == 0
            sent += 1
        consumer = Consumer(
            {
                "bootstrap.servers": broker.bootstrap,
                "client.id": "app",
                "group.id": "g",
                "fetch.wait.max.ms": 10,
                "throttle_cb": lambda event: told["consumer"].append(event.throttle_time),
            }
        )
        consumer.assign([TopicPartition("t", 0, 0)])
        read = 0
        while read < sent:
            message = consumer.poll(PATIENCE)
            assert message is not None
            assert message.error() is None
            read += 1
        while not told["consumer"]:
            consumer.poll(0.1)
        consumer.close()


async def set_quota(bootstrap: str, **values: float) -> None:
    host, _, port = bootstrap.rpartition(":")
    client = RawClient(*await asyncio.open_connection(host, int(port)))
    entity = [{"entity_type": "client-id", "entity_name": "app"}]
    row = await change(client, entity, **values)
    assert row["error_code"] == 0
    client.writer.close()


async def change(client: RawClient, entity: list[dict[str, Any]], **values: float | None) -> dict[str, Any]:
    ops = [
        {"key": key, "value": 0.0 if value is None else value, "remove": value is None} for key, value in values.items()
    ]
    entries = [{"entity": entity, "ops": ops}]
    answer = await client.ask(ALTER_CLIENT_QUOTAS, 1, entries=entries, validate_only=False)
    row: dict[str, Any] = answer["entries"][0]
    return row


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SmallKafka]:
    with SmallKafka(tmp_path_factory.mktemp("kafka")) as server:
        yield server


def _entity(**names: str | None) -> list[dict[str, Any]]:
    return [{"entity_type": kind.replace("_", "-"), "entity_name": name} for kind, name in names.items()]


CHANGES: Final[list[tuple[list[dict[str, Any]], dict[str, float | None]]]] = [
    (_entity(user="ann"), {"producer_byte_rate": 1000.0}),
    (_entity(user="ann", client_id="app"), {"consumer_byte_rate": 2000.0, "request_percentage": 12.5}),
    (_entity(user="ann", client_id=None), {"controller_mutation_rate": 0.5}),
    (_entity(user=None, client_id="app"), {"producer_byte_rate": 1.0}),
    (_entity(user=None, client_id=None), {"producer_byte_rate": 2.0}),
    (_entity(user=None), {"producer_byte_rate": 3.0}),
    (_entity(client_id="app"), {"producer_byte_rate": 4.0}),
    (_entity(client_id=None), {"producer_byte_rate": 5.0}),
    (_entity(client_id="gone"), {"producer_byte_rate": None}),
    (_entity(user="ann"), {"consumer_byte_rate": 7.0, "producer_byte_rate": None}),
    (_entity(), {"producer_byte_rate": 1.0}),
    (_entity(user=""), {"producer_byte_rate": 1.0}),
    (_entity(host="x"), {"producer_byte_rate": 1.0}),
    (_entity(user="a", ip="127.0.0.1"), {"producer_byte_rate": 1.0}),
]
FILTERS: Final[list[list[tuple[str, int, str | None]]]] = [
    [],
    [("user", 0, "ann")],
    [("user", 1, None)],
    [("user", 2, None)],
    [("client-id", 2, None)],
    [("user", 2, None), ("client-id", 2, None)],
    [("user", 0, "ann"), ("client-id", 1, None)],
    [("user", 0, "nobody")],
    [("user", 0, "")],
    [("ip", 2, None)],
    [("user", 0, None)],
    [("user", 1, "x")],
    [("user", 3, None)],
    [("", 0, "x")],
    [("host", 0, "x")],
    [("user", 0, "a"), ("user", 0, "b")],
    [("user", 2, None), ("ip", 2, None)],
]


async def tell(client: RawClient, components: list[tuple[str, int, str | None]], strict: bool) -> Any:
    """The quotas that a filter chooses, or the error."""
    rows = [{"entity_type": kind, "match_type": match, "match": name} for kind, match, name in components]
    answer = await client.ask(DESCRIBE_CLIENT_QUOTAS, 1, components=rows, strict=strict)
    if answer["error_code"]:
        return error_of(answer)
    return sorted(
        (
            sorted((part["entity_type"], part["entity_name"] or "") for part in entry["entity"]),
            sorted((row["key"], row["value"]) for row in entry["values"]),
        )
        for entry in answer["entries"]
    )


def test_the_answers_are_those_of_apache_kafka(kafka: SmallKafka, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with kafka_server(tmp_path / "data") as server:
            ours = await server.connect()
            theirs = RawClient(*await asyncio.open_connection("127.0.0.1", kafka.port))
            server.clients.append(theirs)
            for entity, values in CHANGES:
                found = [error_of(await change(client, entity, **values)) for client in (ours, theirs)]
                assert found[0] == found[1], (entity, values)
            for components in FILTERS:
                for strict in (False, True):
                    until = asyncio.get_running_loop().time() + PATIENCE
                    here = await tell(ours, components, strict)
                    # Kafka's brokers hear of a change a moment after it was answered.
                    while (there := await tell(theirs, components, strict)) != here:
                        assert asyncio.get_running_loop().time() < until, (components, strict, here, there)
                        await asyncio.sleep(0.1)

    asyncio.run(scenario())


def test_a_burst_beyond_a_quota_waits_as_long_as_at_apache_kafka(kafka: SmallKafka, tmp_path: Path) -> None:
    """Both let ten seconds' worth pass, and ask the same time for what is beyond."""

    async def scenario() -> None:
        async with kafka_server(tmp_path / "data") as server:
            ours = await server.connect()
            theirs = RawClient(*await asyncio.open_connection("127.0.0.1", kafka.port))
            server.clients.append(theirs)
            waits = []
            for client in (ours, theirs):
                topic = {"name": "burst", "num_partitions": 1, "replication_factor": 1}
                made = await client.ask(CREATE_TOPICS, 7, topics=[topic], timeout_ms=30_000)
                assert error_of(made["topics"][0]) == ""
                await change(client, _entity(user="ANONYMOUS", client_id="test"), producer_byte_rate=10_000.0)
                # Kafka's brokers hear of it a moment later, and tell a moment before they keep it.
                async with asyncio.timeout(PATIENCE):
                    while not await tell(client, [("user", 0, "ANONYMOUS"), ("client-id", 0, "test")], True):
                        await asyncio.sleep(0.1)
                await asyncio.sleep(1.0)
                client.send_produce("burst", make_batch(bytes(150_000)))
                waits.append((await client.reply())["throttle_time_ms"])
            assert waits[0] == pytest.approx(waits[1], rel=0.2)
            assert waits[0] > 4000

    asyncio.run(scenario())
