"""The audit log of brokers that serve: each dialect's denials and permissions, failed logins, changes by the page."""

import asyncio
import http.client
import json
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from acl_cases import WHO
from broker_process import BrokerProcess
from kafka_server import (
    DELETE_TOPICS,
    FIND_COORDINATOR,
    INIT_PRODUCER_ID,
    LIST_GROUPS,
    METADATA,
    OFFSET_FETCH,
    OFFSET_FOR_LEADER_EPOCH,
    SASL_HANDSHAKE,
    KafkaServer,
    RawClient,
    kafka_server,
    make_batch,
    run,
)
from korvet_fast.core import fair_queue
from korvet_fast.core.acls.binding import AclBinding, Operation, PatternType, Permission, ResourceType
from korvet_fast.core.audit import AuditEntry, AuditLog
from korvet_fast.wire.kafka.dialect import SaslKafkaDialect
from korvet_reference import legacy_client
from raw_connection import connect
from redis_server import free_port
from sasl_world import SHA_256, add_user, log_in
from text_client import TextClient
from tls_world import Authority

WITHIN = 120.0  # seconds: a busy machine may take long
DENIED, ALLOWED = "Denied", "Allowed"
TOKEN = "0123456789abcdef"


def read(path: Path) -> list[dict[str, str]]:
    return [json.loads(line) for line in path.read_text(encoding="ascii").splitlines()]


def tell(path: Path) -> list[tuple[str, ...]]:
    """What the lines say, but time, host and listener."""
    names = ("principal", "api", "operation", "resourceType", "resourceName", "result")
    return [tuple(line[name] for name in names if name in line) for line in read(path)]


@asynccontextmanager
async def guarded(tmp_path: Path, *settings: str, **options: Any) -> AsyncIterator[tuple[KafkaServer, RawClient]]:
    """A broker with ACLs and an audit log, with the topics `mine`, which everybody may use, and `other`."""
    given = ("authorizer=acl", "super.users=User:root", f"audit.log.file={tmp_path / 'audit.log'}", *settings)
    async with kafka_server(tmp_path / "data", *given, **options) as server:
        for name in ("mine", "other"):
            await server.broker.topics.create(name, 1, {})
        await allow(server, Operation.ALL, "mine")
        yield server, await server.connect()


async def allow(
    server: KafkaServer, operation: Operation, name: str, resource: ResourceType = ResourceType.TOPIC
) -> None:
    assert server.broker.acls is not None
    binding = AclBinding(resource, name, PatternType.LITERAL, "User:*", "*", operation, Permission.ALLOW)
    await server.broker.acls.create([binding], "User:root")


def topic_line(api: str, operation: str, name: str, result: str = DENIED) -> tuple[str, ...]:
    return WHO, api, operation, "TOPIC", name, result


def test_what_is_denied_is_written_and_what_is_allowed_is_not(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with guarded(tmp_path) as (_, client):
            for name, code in (("mine", 0), ("other", 29)):
                assert (await client.produce(name, make_batch(b"x")))["error_code"] == code
                assert (await client.fetch(name, 0))["error_code"] == code
            assert (await client.create("new"))["error_code"] == 29
            await client.ask(DELETE_TOPICS, 5, topic_names=["other"], timeout_ms=1000)
            await client.ask(FIND_COORDINATOR, 4, coordinator_keys=["g"], key_type=0)
            await client.ask(OFFSET_FETCH, 7, group_id="g", topics=None)
            await client.ask(METADATA, 9, topics=[{"name": "other"}])
            await client.ask(METADATA, 9, topics=[{"name": "mine"}, {"name": "other"}])

    run(scenario)
    assert tell(tmp_path / "audit.log") == [
        topic_line("Produce", "WRITE", "other"),
        topic_line("Fetch", "READ", "other"),
        topic_line("CreateTopics", "CREATE", "new"),
        topic_line("DeleteTopics", "DESCRIBE", "other"),
        (WHO, "FindCoordinator", "DESCRIBE", "GROUP", "g", DENIED),
        (WHO, "OffsetFetch", "DESCRIBE", "GROUP", "g", DENIED),
        topic_line("Metadata", "DESCRIBE", "other"),
        topic_line("Metadata", "DESCRIBE", "other"),
    ]
    assert {line["host"] for line in read(tmp_path / "audit.log")} == {"127.0.0.1"}


def test_lists_that_leave_out_what_is_not_allowed_write_nothing(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with guarded(tmp_path) as (_, client):
            answer = await client.ask(METADATA, 9, topics=None)
            assert [row["name"] for row in answer["topics"]] == ["mine"]
            await client.ask(75, 0, topics=[], response_partition_limit=10, cursor=None)
            await client.ask(LIST_GROUPS, 4, states_filter=[])
            await client.ask(INIT_PRODUCER_ID, 4, transactional_id=None, transaction_timeout_ms=0)
            epochs = [{"topic": "mine", "partitions": [{"partition": 0, "leader_epoch": 0}]}]
            await client.ask(OFFSET_FOR_LEADER_EPOCH, 3, replica_id=-1, topics=epochs)

    run(scenario)
    assert tell(tmp_path / "audit.log") == []


def test_what_is_allowed_is_written_where_that_is_wanted(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with guarded(tmp_path, "audit.log.allowed=true") as (server, client):
            await allow(server, Operation.CREATE, "kafka-cluster", ResourceType.CLUSTER)
            rows = [
                {"name": name, "partition_data": [{"index": 0, "records": bytes(make_batch(b"x"))}]}
                for name in ("mine", "other")
            ]
            for topics in (rows[:1], rows):
                await client.ask(0, 9, acks=-1, timeout_ms=5000, topic_data=topics)
            await client.ask(METADATA, 9, topics=[{"name": "mine"}])
            await client.ask(METADATA, 9, topics=None)
            assert (await client.create("new"))["error_code"] == 0

    run(scenario)
    assert tell(tmp_path / "audit.log") == [
        topic_line("Produce", "WRITE", "mine", ALLOWED),
        topic_line("Produce", "WRITE", "mine", ALLOWED),
        topic_line("Produce", "WRITE", "other"),
        topic_line("Metadata", "DESCRIBE", "mine", ALLOWED),
        topic_line("CreateTopics", "CREATE", "new", ALLOWED),
    ]


def test_a_producer_without_a_right_is_written(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with kafka_server(
            tmp_path / "data", "authorizer=acl", f"audit.log.file={tmp_path / 'audit.log'}"
        ) as server:
            client = await server.connect()
            await client.ask(INIT_PRODUCER_ID, 4, transactional_id=None, transaction_timeout_ms=0)

    run(scenario)
    expected = (WHO, "InitProducerId", "IDEMPOTENT_WRITE", "CLUSTER", "kafka-cluster", DENIED)
    assert tell(tmp_path / "audit.log") == [expected]


def test_failed_logins(tmp_path: Path) -> None:
    async def scenario() -> None:
        settings = (f"sasl.enabled.mechanisms=PLAIN,{SHA_256}", "connection.failed.authentication.delay.ms=0")
        async with guarded(tmp_path, *settings, dialect_type=SaslKafkaDialect) as (server, client):
            for user in ("ann", "bob"):
                await add_user(server.broker.users, user, "pear", SHA_256)
            for name, mechanism in (("ann", "PLAIN"), ("bob\n", SHA_256)):
                refused = await server.connect()
                assert (await log_in(refused, name, "plum", mechanism))["error_code"] == 58
                assert await refused.ended() == b""
            assert (await client.ask(SASL_HANDSHAKE, 1, mechanism="GSSAPI"))["error_code"] == 33
            again = await server.connect()
            assert (await log_in(again, "ann", "pear", SHA_256))["error_code"] == 0
            assert (await log_in(again, "bob", "pear", SHA_256))["error_code"] == 58
            await again.ended()

    run(scenario)
    lines = read(tmp_path / "audit.log")
    assert [(line["principal"], line["api"], line["operation"], line["result"]) for line in lines] == [
        (who, "SaslAuthenticate", "AUTHENTICATE", DENIED) for who in ("User:ann", "User:bob\n", WHO, "User:bob")
    ]
    assert [line["reason"].split(":")[-1] for line in lines][:2] == [
        " a wrong name or password of ann",
        r" a wrong name or password of bob\n",
    ]
    assert "GSSAPI" in lines[2]["reason"]
    assert "may not become another" in lines[3]["reason"]


def test_certificates_that_let_nobody_in(tmp_path: Path) -> None:
    authority, other = Authority(tmp_path), Authority(tmp_path, "other")

    async def scenario() -> None:
        certificates = authority.certificates("required", rules="RULE:^CN=known,.*$/known/")
        async with kafka_server(
            tmp_path / "data", f"audit.log.file={tmp_path / 'audit.log'}", certificates=certificates
        ) as server:
            strangers = [
                authority.client(authority.issue("stranger", "stranger.test")),
                authority.client(other.issue("foreign", "foreign.test")),
                authority.client(),
            ]
            for context in strangers:
                await refused(server, context)
            known = await server.connect(authority.client(authority.issue("known", "known.test")))
            assert (await known.ask(METADATA, 9, topics=[]))["cluster_id"]

    async def refused(server: KafkaServer, context: ssl.SSLContext) -> None:
        try:
            client = await server.connect(context)
            client.send(METADATA, 9, {"topics": []}, answered=False)
            assert await client.ended() == b""
        except (ssl.SSLError, ConnectionError):
            pass  # TLS says why, if the client reads it before the end

    run(scenario)
    lines = read(tmp_path / "audit.log")
    assert [(line["api"], line["operation"], line["result"]) for line in lines] == [("TLS", "AUTHENTICATE", DENIED)] * 3
    for word, line in zip(("no rule of", "certificate", "certificate"), lines, strict=True):
        assert word in line["reason"]


@pytest.mark.parametrize("allowed", [False, True])
def test_every_dialect_of_a_real_broker(tmp_path: Path, allowed: bool) -> None:
    text, legacy, page = free_port(), free_port(), free_port()
    (tmp_path / "token").write_text(TOKEN)
    log = tmp_path / "audit.log"
    listeners = [f"text://127.0.0.1:{text}", f"legacy://127.0.0.1:{legacy}", f"http://127.0.0.1:{page}"]
    broker = BrokerProcess(
        tmp_path / "data",
        "authorizer=acl",
        "super.users=User:http",
        f"audit.log.file={log}",
        f"audit.log.allowed={str(allowed).lower()}",
        f"http.token.file={tmp_path / 'token'}",
        arguments=[part for each in listeners for part in ("--listen", each)],
    )
    with broker:
        run(lambda: ask_kafka(broker.port))
        with TextClient(text) as client:
            assert "UNAUTHORIZED" in client.ask("V1|1|PRODUCE|by-text k:v")
            assert "UNAUTHORIZED" in client.ask("V1|1|CONSUME|by-text 0 0")
        run(lambda: ask_legacy(legacy))
        assert ask_page(page, "GET", "/", "wrong-0123456789")[0] == 401
        assert ask_page(page, "GET", "/", "")[0] == 401  # a browser that has not asked for the password yet
        form = make_form(page)
        assert ask_page(page, "POST", "/create-topic", TOKEN, form | {"name": "by-page"})[0] == 303
        dropped = ask_page(page, "GET", "/metrics", TOKEN)[1]
        assert "\nkorvet_audit_dropped_lines_total 0\n" in dropped
    names = ("listener", "api", "operation", "resourceName", "result")
    assert [tuple(line.get(name) for name in names) for line in read(log)] == [
        (f"kafka://127.0.0.1:{broker.port}", "Produce", "WRITE", "by-kafka", DENIED),
        (listeners[0], "PRODUCE", "WRITE", "by-text", DENIED),
        (listeners[0], "CONSUME", "READ", "by-text", DENIED),
        (listeners[1], "PRODUCE", "WRITE", "by-legacy", DENIED),
        (listeners[1], "FETCH", "READ", "by-legacy", DENIED),
        (listeners[1], "OFFSETS", "DESCRIBE", "by-legacy", DENIED),
        (listeners[2], "GET /", "AUTHENTICATE", None, DENIED),
        (listeners[2], "POST /create-topic", "CREATE", "by-page", ALLOWED),
    ]


async def ask_kafka(port: int) -> None:
    async with connect(port) as client:
        assert (await client.produce("by-kafka", make_batch(b"x")))["error_code"] == 29


async def ask_legacy(port: int) -> None:
    bodies = {
        0: legacy_client.produce_body("by-legacy", 0, legacy_client.encode_message(b"hello")),
        1: legacy_client.fetch_body("by-legacy", 0, 0, 1000),
        4: legacy_client.encode_name("by-legacy") + bytes(4) + b"\xff" * 8 + (1).to_bytes(4, "big"),
    }
    for number, body in bodies.items():
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(legacy_client.encode_request(number, body))
        writer.write_eof()
        await reader.read()
        writer.close()


def ask_page(port: int, method: str, path: str, token: str, form: dict[str, str] | None = None) -> tuple[int, str]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=WITHIN)
    headers = {"Content-Type": "application/x-www-form-urlencoded"} if form else {}
    headers |= {"Authorization": f"Bearer {token}"} if token else {}
    try:
        connection.request(method, path, urlencode(form) if form else None, headers)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


def make_form(port: int) -> dict[str, str]:
    """The form's own token, which a page has in it."""
    _, page = ask_page(port, "GET", "/create-topic", TOKEN)
    return {"form_token": page.split('name="form_token" value="')[1].split('"')[0]}


def test_a_storm_of_denials_costs_no_more_than_its_answers(tmp_path: Path) -> None:
    """One request with as many denied topics as the queue holds entries, and half as many more."""

    async def scenario() -> None:
        async with guarded(tmp_path) as (server, client):
            rows = [
                {"topic": f"t{number}", "partitions": [{"partition": 0, "partition_max_bytes": 1}]}
                for number in range(15_000)
            ]
            await client.ask(1, 11, max_wait_ms=0, min_bytes=1, max_bytes=1, topics=rows)
            assert server.broker.audit is not None
            dropped.append(server.broker.audit.dropped)
            assert (await client.produce("mine", make_batch(b"x")))["error_code"] == 0

    dropped: list[int] = []
    run(scenario)
    assert len(read(tmp_path / "audit.log")) == 15_000 - dropped[0]


def fetch_of(names: list[str]) -> tuple[int, int, dict[str, Any]]:
    rows = [{"topic": name, "partitions": [{"partition": 0, "partition_max_bytes": 1}]} for name in names]
    return 1, 11, {"max_wait_ms": 0, "min_bytes": 1, "max_bytes": 1, "topics": rows}


def offset_fetch_of(names: list[str]) -> tuple[int, int, dict[str, Any]]:
    return OFFSET_FETCH, 7, {"group_id": "g", "topics": [{"name": name, "partition_indexes": [0]} for name in names]}


@pytest.mark.parametrize(
    ("request_of", "names"),
    [(fetch_of, []), (fetch_of, ["mine"]), (offset_fetch_of, ["mine"])],
    ids=["denied", "in-part", "offsets"],
)
def test_lines_of_denied_topics_let_others_go_first(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    request_of: Callable[[list[str]], tuple[int, int, dict[str, Any]]],
    names: list[str],
) -> None:
    """Those of one request are written in many turns of the loop, also where some of its topics are allowed."""
    for limit in ("SLICE", "TURN", "WAIT_AFTER", "LONGEST"):  # every turn is over at once
        monkeypatch.setattr(fair_queue, limit, 1e-9)
    put: list[AuditEntry] = []
    monkeypatch.setattr(AuditLog, "put", lambda _, entry: put.append(entry))

    async def scenario() -> None:
        async with guarded(tmp_path) as (server, client):
            await allow(server, Operation.ALL, "g", ResourceType.GROUP)
            key, version, values = request_of([*names, *(f"t{number}" for number in range(5_000))])
            asked = asyncio.ensure_future(client.ask(key, version, **values))
            most = before = 0
            while not asked.done():
                await asyncio.sleep(0)
                most, before = max(most, len(put) - before), len(put)
            await asked
            assert len(put) == 5_000
            assert most <= 1_000

    run(scenario)


def test_without_a_file_nothing_is_written(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with kafka_server(tmp_path / "data", "authorizer=acl") as server:
            assert server.broker.audit is None
            client = await server.connect()
            assert (await client.produce("other", make_batch(b"x")))["error_code"] == 29

    run(scenario)
    assert [path.name for path in tmp_path.iterdir()] == ["data"]
