"""Quotas of clients over a socket: what they are told, what they may not do meanwhile, and who is not concerned."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from core_world import NOW, StillClock
from kafka_messages import CATALOG
from kafka_requests import EVERY, request_of
from kafka_server import (
    ALTER_CLIENT_QUOTAS,
    API_VERSIONS,
    CREATE_PARTITIONS,
    CREATE_TOPICS,
    DELETE_TOPICS,
    DESCRIBE_CLIENT_QUOTAS,
    METADATA,
    PRODUCE,
    KafkaServer,
    RawClient,
    error_of,
    frame,
    kafka_server,
    make_batch,
    run,
)
from korvet_fast.core.acls.binding import AclBinding, Operation, PatternType, Permission, ResourceType
from korvet_fast.core.quotas.entity import QuotaEntity, QuotaKey
from korvet_fast.core.quotas.token_bucket import BURST
from korvet_fast.net.request_queue import RequestQueue
from korvet_fast.wire.http.collectors import collect_broker
from korvet_fast.wire.http.exposition import Exposition
from korvet_fast.wire.kafka.limit import tell_throttle
from metric_rows import read_rows

USER, CLIENT_ID = "user", "client-id"
EXACT, DEFAULT, SPECIFIED = range(3)


def entity(**names: str | None) -> list[dict[str, Any]]:
    """`user="ann"`, `client_id=None`: the default client id."""
    return [{"entity_type": kind.replace("_", "-"), "entity_name": name} for kind, name in names.items()]


async def alter(
    client: RawClient, named: list[dict[str, Any]], *, version: int = 1, validate_only: bool = False, **values: Any
) -> dict[str, Any]:
    """The one row of the answer; None removes a quota."""
    ops = [
        {"key": key, "value": 0.0 if value is None else value, "remove": value is None} for key, value in values.items()
    ]
    entries = [{"entity": named, "ops": ops}]
    answer = await client.ask(ALTER_CLIENT_QUOTAS, version, entries=entries, validate_only=validate_only)
    (row,) = answer["entries"]
    assert row["entity"] == named
    found: dict[str, Any] = row
    return found


async def describe(
    client: RawClient, *components: tuple[str, int, str | None], strict: bool = False, version: int = 1
) -> Any:
    """The quotas by entity, each as pairs of type and name; or the error."""
    rows = [{"entity_type": kind, "match_type": match, "match": name} for kind, match, name in components]
    answer = await client.ask(DESCRIBE_CLIENT_QUOTAS, version, components=rows, strict=strict)
    if answer["error_code"]:
        assert answer["entries"] is None
        return error_of(answer)
    return {
        tuple((part["entity_type"], part["entity_name"]) for part in entry["entity"]): {
            row["key"]: row["value"] for row in entry["values"]
        }
        for entry in answer["entries"]
    }


async def assert_muted(server: KafkaServer, client: RawClient) -> None:
    """Nothing of the client is served, while others are; then it goes on, as where memory is short."""
    times = server.broker.request_times["Metadata"]
    before = times.count
    client.send(METADATA, 9, {"topics": []})
    other = await server.connect()
    for _ in range(3):
        assert error_of(await other.ask(API_VERSIONS, 0)) == ""
    assert times.count == before
    for connection in list(server.server.connections):
        connection._requests.unmute()
    assert (await client.reply())["cluster_id"] == server.broker.cluster_id


@pytest.mark.parametrize("version", range(2))
def test_quotas_are_set_and_told_and_removed(tmp_path: Path, version: int) -> None:
    async def scenario() -> None:
        async with kafka_server(tmp_path) as server:
            client = await server.connect()
            named = entity(user="ann", client_id=None)
            row = await alter(client, named, version=version, producer_byte_rate=1024.0, request_percentage=12.5)
            assert (row["error_code"], row["error_message"]) == (0, None)
            row = await alter(client, entity(client_id="app"), version=version, consumer_byte_rate=7.0)
            assert row["error_code"] == 0
            both, app = ((USER, "ann"), (CLIENT_ID, None)), ((CLIENT_ID, "app"),)
            every = {app: {"consumer_byte_rate": 7}, both: {"producer_byte_rate": 1024, "request_percentage": 12.5}}
            assert await describe(client, version=version) == every
            assert await describe(client, version=version, strict=True) == {}
            assert await describe(client, (USER, SPECIFIED, None), version=version) == {both: every[both]}
            assert await describe(client, (CLIENT_ID, DEFAULT, None), version=version) == {both: every[both]}
            assert await describe(client, (CLIENT_ID, EXACT, "app"), strict=True) == {app: every[app]}
            assert await describe(client, (USER, EXACT, "bob")) == await describe(client, (USER, EXACT, "")) == {}
            assert await describe(client, ("ip", SPECIFIED, None)) == {}
            await alter(client, named, validate_only=True, producer_byte_rate=None)
            assert await describe(client) == every
            await alter(client, named, producer_byte_rate=None, request_percentage=None)
            assert await describe(client) == {app: every[app]}
        async with kafka_server(tmp_path) as server:  # they outlive the broker
            assert await describe(await server.connect()) == {app: every[app]}

    run(scenario)


@pytest.mark.parametrize(
    ("components", "error"),
    [
        ([("", EXACT, "x")], "INVALID_REQUEST"),
        ([(USER, EXACT, "x"), (USER, DEFAULT, None)], "INVALID_REQUEST"),
        ([("host", EXACT, "x")], "UNSUPPORTED_VERSION"),
        ([(USER, EXACT, None)], "INVALID_REQUEST"),
        ([(USER, DEFAULT, "x")], "INVALID_REQUEST"),
        ([(USER, SPECIFIED, "x")], "INVALID_REQUEST"),
        ([(USER, 3, None)], "INVALID_REQUEST"),
        ([(USER, SPECIFIED, None), ("ip", SPECIFIED, None)], "INVALID_REQUEST"),
    ],
)
def test_a_filter_that_cannot_be_is_refused(tmp_path: Path, components: list[Any], error: str) -> None:
    async def scenario() -> None:
        async with kafka_server(tmp_path) as server:
            assert await describe(await server.connect(), *components) == error

    run(scenario)


@pytest.mark.parametrize(
    ("named", "values", "said"),
    [
        ([], {"producer_byte_rate": 1.0}, "Invalid empty client quota entity"),
        (entity(user=""), {"producer_byte_rate": 1.0}, "Empty user not supported"),
        (entity(host="x"), {"producer_byte_rate": 1.0}, "Unhandled client quota entity type: host"),
        (entity(ip="127.0.0.1"), {"connection_creation_rate": 1.0}, "quotas of addresses are not kept"),
        (entity(user="a") + entity(user="b"), {"producer_byte_rate": 1.0}, "duplicate entity entry user"),
        (entity(user="a"), {"connection_creation_rate": 1.0}, "Invalid configuration key connection_creation_rate"),
        (entity(user="a"), {"producer_byte_rate": 1.5}, "must be a Long value"),
        (entity(user="a"), {"producer_byte_rate": 0.0}, "must be above 0"),
        (entity(user="a"), {"request_percentage": float("nan")}, "must be above 0"),
        (entity(user="a" * 2000), {"request_percentage": 1.0}, "1024 characters at most"),
    ],
)
def test_a_change_that_cannot_be_is_refused(tmp_path: Path, named: Any, values: dict[str, float], said: str) -> None:
    async def scenario() -> None:
        async with kafka_server(tmp_path) as server:
            client = await server.connect()
            for validate_only in (True, False):
                row = await alter(client, named, validate_only=validate_only, **values)
                assert (error_of(row), said in row["error_message"]) == ("INVALID_REQUEST", True), row
            assert await describe(client) == {}

    run(scenario)


def test_what_is_named_twice_is_refused_and_the_rest_is_done(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with kafka_server(tmp_path) as server:
            client = await server.connect()
            op = {"key": "producer_byte_rate", "value": 1.0, "remove": False}
            entries = [
                {"entity": entity(user="a", client_id="x"), "ops": [op]},
                {"entity": entity(client_id="x", user="a"), "ops": [op]},
                {"entity": entity(user="b"), "ops": [op, op]},
                {"entity": entity(user="c"), "ops": [op]},
            ]
            answer = await client.ask(ALTER_CLIENT_QUOTAS, 1, entries=entries, validate_only=False)
            assert [error_of(row) for row in answer["entries"]] == ["INVALID_REQUEST"] * 3 + [""]
            assert list(await describe(client)) == [((USER, "c"),)]

    run(scenario)


def test_a_producer_beyond_its_quota_is_told_how_long_and_muted(tmp_path: Path) -> None:
    clock = StillClock()

    async def scenario() -> None:
        async with kafka_server(tmp_path, clock=clock) as server:
            client, admin = await server.connect(), await server.connect()
            await client.create("t")
            await alter(admin, entity(client_id="test"), producer_byte_rate=1000.0)
            batch = batch_of(9800)  # as much as a rest allows: the second one is muted for ten seconds
            payload = client.request(PRODUCE, 9, produce_values(batch))
            assert (await ask_produce(client, batch))["throttle_time_ms"] == 0  # as after a rest
            answer = await ask_produce(client, batch)
            assert error_of(answer["responses"][0]["partition_responses"][0]) == ""
            assert answer["throttle_time_ms"] == 2 * len(payload) - BURST * 1000
            await assert_muted(server, client)
            clock.seconds += answer["throttle_time_ms"] / 1000 + 1
            assert (await ask_produce(client, batch_of(1)))["throttle_time_ms"] == 0
            assert server.broker.quotas.throttled == {QuotaKey.PRODUCE: 1}

    run(scenario)


def batch_of(size: int) -> bytearray:
    """A batch of one value, at the time of a clock that stands still."""
    return make_batch(bytes(size), time_ms=NOW)


def produce_values(batch: bytes | bytearray, acks: int = -1) -> dict[str, Any]:
    rows = [{"name": "t", "partition_data": [{"index": 0, "records": batch}]}]
    return {"acks": acks, "timeout_ms": 10_000, "topic_data": rows}


async def ask_produce(client: RawClient, batch: bytes | bytearray) -> dict[str, Any]:
    return await client.ask(PRODUCE, 9, **produce_values(batch))


def test_a_producer_that_waits_for_no_answer_is_muted(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with kafka_server(tmp_path, clock=StillClock()) as server:
            client, admin = await server.connect(), await server.connect()
            await client.create("t")
            await alter(admin, entity(user="ANONYMOUS"), producer_byte_rate=100.0)
            client.send(PRODUCE, 9, produce_values(batch_of(6000), acks=0), answered=False)
            client.send(METADATA, 9, {"topics": []})
            while not server.broker.quotas.throttled:
                await asyncio.sleep(0.001)
            assert server.broker.request_times["Metadata"].count == 0
            for connection in list(server.server.connections):
                connection._requests.unmute()
            await client.reply()

    run(scenario)


def test_a_consumer_gets_a_window_at_most_and_is_muted_by_what_it_got(tmp_path: Path) -> None:
    clock = StillClock()

    async def scenario() -> None:
        async with kafka_server(tmp_path, clock=clock) as server:
            client, admin = await server.connect(), await server.connect()
            await client.create("t")
            size = len(batch_of(4000))
            for _ in range(10):
                await client.produce("t", batch_of(4000))
            await alter(admin, entity(user=None), consumer_byte_rate=1000.0)
            client.send_fetch("t", 0)
            answer = await client.reply()
            got = sum(map(len, [answer["responses"][0]["partitions"][0]["records"]]))
            assert (got, answer["throttle_time_ms"]) == (2 * size, 0)  # ten seconds' worth, in whole batches
            client.send_fetch("t", 2)
            answer = await client.reply()
            assert answer["throttle_time_ms"] == 4 * size - BURST * 1000
            await assert_muted(server, client)
            assert server.broker.quotas.throttled == {QuotaKey.FETCH: 1}

    run(scenario)


def test_a_share_of_the_loop_mutes_for_a_second_at_most(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    muted: list[float] = []
    monkeypatch.setattr(RequestQueue, "mute", lambda _, seconds: muted.append(seconds))

    async def scenario() -> None:
        async with kafka_server(tmp_path, clock=StillClock()) as server:
            client, admin = await server.connect(), await server.connect()
            await alter(admin, entity(user="ANONYMOUS", client_id="test"), request_percentage=1e-9)
            answer = await client.ask(METADATA, 9, topics=[])
            assert answer["throttle_time_ms"] == 1000
            assert muted == [1.0]
            assert server.broker.quotas.throttled == {QuotaKey.REQUEST: 1}

    run(scenario)


@pytest.mark.parametrize(
    ("key", "version", "values"),
    [
        (PRODUCE, 9, {"acks": 1, "timeout_ms": 1000, "topic_data": [{"name": "t", "partition_data": []}]}),
        (DELETE_TOPICS, 5, {"topic_names": ["t"], "timeout_ms": 1000}),
        (DESCRIBE_CLIENT_QUOTAS, 1, {"components": [], "strict": False}),
    ],
)
def test_what_is_denied_counts_as_what_is_done(tmp_path: Path, key: int, version: int, values: dict[str, Any]) -> None:
    """A row of the table of rights, one that the handler asks for, and a right for the whole request."""

    async def scenario() -> None:
        async with kafka_server(tmp_path, "authorizer=acl", clock=StillClock()) as server:
            assert server.broker.acls is not None
            right = ResourceType.CLUSTER, "kafka-cluster", PatternType.LITERAL, "User:*", "*", Operation.ALTER_CONFIGS
            await server.broker.acls.create([AclBinding(*right, Permission.ALLOW)], "User:root")
            client, admin = await server.connect(), await server.connect()
            await alter(admin, entity(user="ANONYMOUS", client_id="test"), request_percentage=1e-9)
            answer = await client.ask(key, version, **values)
            assert answer["throttle_time_ms"] == 1000
            assert server.broker.quotas.throttled == {QuotaKey.REQUEST: 1}

    run(scenario)


def test_an_encoded_answer_tells_the_time_where_that_stands_at_its_beginning() -> None:
    elsewhere = set()
    for key, version in EVERY:
        message = CATALOG[key]
        field = next((field for field in message.response_shape.fields if field.name == "throttle_time_ms"), None)
        if field is None or version < field.since:
            continue
        told = tell_throttle(message, version, {"correlation_id": 5}, 1234)
        assert isinstance(told, dict)
        expected = frame(message.response.encode(told, version))
        empty = frame(message.response.encode({"correlation_id": 5}, version))
        encoded = tell_throttle(message, version, [bytearray(empty)], 1234)
        assert isinstance(encoded, list)
        if b"".join(map(bytes, encoded)) != expected:
            assert b"".join(map(bytes, encoded)) == empty
            elsewhere.add(message.name)
    # Handlers give values for all of these but ApiVersions, whose clients are not told.
    assert elsewhere == {"Produce", "ApiVersions", "OffsetDelete"}


def test_clients_that_have_no_quota_are_not_concerned(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with kafka_server(tmp_path, clock=StillClock()) as server:
            client = await server.connect()
            await client.create("t")
            await alter(client, entity(user="ANONYMOUS", client_id="other"), producer_byte_rate=1.0)
            await alter(client, entity(user="bob"), producer_byte_rate=1.0, request_percentage=0.001)
            for _ in range(3):
                assert (await ask_produce(client, batch_of(6000)))["throttle_time_ms"] == 0
            assert server.broker.quotas.throttled == {}

    run(scenario)


def test_partitions_beyond_the_clients_own_rate_are_refused(tmp_path: Path) -> None:
    clock = StillClock()

    async def scenario() -> None:
        async with kafka_server(tmp_path, clock=clock) as server:
            client, admin = await server.connect(), await server.connect()
            await alter(admin, entity(client_id="test"), controller_mutation_rate=1.0)
            assert error_of(await client.create("a", 14)) == ""  # four more than ten seconds' worth
            for key, version, values in (
                (CREATE_TOPICS, 7, {"topics": [{"name": "b", "num_partitions": 1, "replication_factor": 1}]}),
                (CREATE_PARTITIONS, 3, {"topics": [{"name": "a", "count": 15, "assignments": None}]}),
                (DELETE_TOPICS, 6, {"topics": [{"name": "a"}]}),
            ):
                answer = await client.ask(key, version, timeout_ms=1000, **values)
                (row,) = next(value for value in answer.values() if isinstance(value, list))
                assert error_of(row) == "THROTTLING_QUOTA_EXCEEDED"
                assert "controller_mutation_rate = 1 partitions a second is exceeded" in row["error_message"]
                assert answer["throttle_time_ms"] == 4000
                await assert_muted(server, client)
            made = await client.ask(METADATA, 9, topics=[{"name": "auto"}], allow_auto_topic_creation=True)
            assert error_of(made["topics"][0]) == "UNKNOWN_TOPIC_OR_PARTITION"
            assert server.broker.quotas.throttled == {QuotaKey.MUTATION: 3}
            clock.seconds += 4
            made = await client.ask(METADATA, 9, topics=[{"name": "auto"}], allow_auto_topic_creation=True)
            assert error_of(made["topics"][0]) == ""  # and now there is a debt of one
            assert error_of(await client.create("b")) == "THROTTLING_QUOTA_EXCEEDED"

    run(scenario)


def test_only_looking_whether_a_topic_can_be_made_costs_nothing(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with kafka_server(tmp_path, clock=StillClock()) as server:
            client = await server.connect()
            await alter(client, entity(client_id="test"), controller_mutation_rate=1.0)
            topic = {"name": "t", "num_partitions": 100, "replication_factor": 1}
            for _ in range(2):
                answer = await client.ask(CREATE_TOPICS, 7, topics=[topic], timeout_ms=1000, validate_only=True)
                assert error_of(answer["topics"][0]) == ""

    run(scenario)


def test_a_broken_request_of_a_client_with_quotas_closes_its_connection_as_ever(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with kafka_server(tmp_path) as server:
            admin = await server.connect()
            every = {str(key): 1e6 for key in QuotaKey}
            await alter(admin, entity(client_id=None), **every)
            for key, version in EVERY:
                client = await server.connect()
                client.writer.write(frame(request_of(key, version)))
                client.writer.write_eof()
                await client.ended()
            assert error_of(await admin.ask(API_VERSIONS, 0)) == ""

    run(scenario)


def test_the_metrics_count_what_was_throttled(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with kafka_server(tmp_path, clock=StillClock()) as server:
            client = await server.connect()
            await alter(client, entity(client_id="test"), request_percentage=1e-9)
            await client.ask(METADATA, 9, topics=[])
            out = Exposition()
            collect_broker(server.broker, out)
            rows = read_rows(b"".join(map(bytes, out.finish())).decode())
            name = "korvet_throttled_requests_total"
            assert rows[name, (("quota", "request_percentage"),)] == 1
            assert rows[name, (("quota", "producer_byte_rate"),)] == 0

    run(scenario)


def test_a_quota_that_was_set_in_the_registry_is_the_brokers(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with kafka_server(tmp_path) as server:
            await server.broker.quota_registry.alter(
                QuotaEntity("ann", None), {"producer_byte_rate": 5.0}, "User:root", validate=False
            )
            assert server.broker.quotas.find("User:ann", "x")[QuotaKey.PRODUCE].rate == 5

    run(scenario)
