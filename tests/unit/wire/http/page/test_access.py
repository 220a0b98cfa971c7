"""The page under ACLs: what each view and each change needs, what lists leave out, and what is written of it."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlencode

import pytest

from batches import make_batch
from core_world import put, settle
from http_scene import TOKEN, ask, get, post, service
from korvet_fast.core.acls.binding import (
    CLUSTER_NAME,
    AclBinding,
    AclFilter,
    Operation,
    PatternType,
    Permission,
    ResourceType,
)
from korvet_fast.core.groups.documents import OffsetAndMetadata, TopicPartition
from korvet_fast.wire.http.routes import ROUTES
from korvet_fast.wire.http.session import Service, Session

TOPIC, GROUP, CLUSTER = ResourceType.TOPIC, ResourceType.GROUP, ResourceType.CLUSTER
BEARER = f"Authorization: Bearer {TOKEN.decode()}"
ACLS = ("authorizer=acl", "http.token.principal=User:page")

Right = tuple[Operation, ResourceType, str]


class Case(NamedTuple):
    """A request of a browser. `rights`: it needs all of these. `status`: that of its answer to who has them."""

    path: str
    fields: dict[str, str]
    rights: tuple[Right, ...]
    changes: bool = False
    status: int = 200


RESET = {"id": "billing", "topic": "orders", "to": "earliest"}
DELETION = {"topic": "orders", "partition": "0", "offset": "2"}
CASES = (
    Case("/", {}, ()),
    Case("/topic", {"name": "orders"}, ((Operation.DESCRIBE, TOPIC, "orders"),)),
    Case("/records", {"topic": "orders"}, ((Operation.READ, TOPIC, "orders"),)),
    Case("/groups", {}, ()),
    Case("/group", {"id": "billing"}, ((Operation.DESCRIBE, GROUP, "billing"),)),
    Case("/brokers", {}, ((Operation.DESCRIBE, CLUSTER, CLUSTER_NAME),)),
    Case("/settings", {}, ((Operation.DESCRIBE_CONFIGS, CLUSTER, CLUSTER_NAME),)),
    Case("/create-topic", {}, ()),
    Case("/create-topic", {"name": " new "}, ((Operation.CREATE, TOPIC, "new"),), True, 303),
    Case("/create-topic", {"name": "new"}, ((Operation.CREATE, CLUSTER, CLUSTER_NAME),), True, 303),
    Case("/delete-records", DELETION, ((Operation.DELETE, TOPIC, "orders"),)),
    Case("/delete-records", DELETION, ((Operation.DELETE, TOPIC, "orders"),), True, 303),
    Case("/reset-offsets", RESET, ((Operation.READ, GROUP, "billing"), (Operation.READ, TOPIC, "orders"))),
    Case("/reset-offsets", RESET, ((Operation.READ, GROUP, "billing"), (Operation.READ, TOPIC, "orders")), True, 303),
    Case("/page.css", {}, ()),
    Case("/page.js", {}, ()),
)


@asynccontextmanager
async def guarded(directory: Path, *flags: str, token: bytes | None = TOKEN) -> AsyncIterator[Service]:
    """A broker with ACLs, the topics `orders` and `ledger`, and groups that read one of them, and both."""
    async with service(directory / "data", token, flags=(*ACLS, *flags)) as given:
        given = replace(given, principal=given.broker.settings.text("http.token.principal"))
        for name in ("orders", "ledger"):
            await given.broker.topics.create(name, 1, {})
            for _ in range(4):
                await settle(put(given.broker.partition(name, 0), make_batch([b"secret"]), -1))
        for group, topics in (("billing", ("orders",)), ("audit", ("orders", "ledger"))):
            committed = {TopicPartition(name, 0): OffsetAndMetadata(3) for name in topics}
            assert not any((await given.broker.groups.offsets.commit(group, "", None, -1, committed)).values())
        yield given


async def allow(given: Service, *rights: Right, principal: str = "User:page") -> None:
    assert given.broker.acls is not None
    bindings = [
        AclBinding(resource, name, PatternType.LITERAL, principal, "*", operation, Permission.ALLOW)
        for operation, resource, name in rights
    ]
    await given.broker.acls.create(bindings, "User:root")


async def send(given: Service, case: Case, *headers: str) -> tuple[int, str]:
    """Status and body."""
    if case.changes:
        request = post(case.path, *headers, form_token=given.form_token, **case.fields)
    else:
        request = get(f"{case.path}?{urlencode(case.fields)}" if case.fields else case.path, *headers)
    status, _, body, _ = await ask(given, request)
    return status, body.decode()


def holds(given: Service) -> tuple[bool, int, int]:
    """What the changes change: a topic, the first offset of another, a group's offset."""
    billing = given.broker.groups.partitions.runtimes.get("billing")
    assert billing is not None
    committed = billing.offsets.stored[TopicPartition("orders", 0)].offset
    return given.broker.topics.get("new") is not None, given.broker.partition("orders", 0).log.start, committed


def test_every_path_of_the_page_is_in_the_table() -> None:
    assert {case.path for case in CASES} == ROUTES.keys() - {"/metrics", "/livez", "/readyz"}
    assert {case.path for case in CASES if case.changes} == {path for path, route in ROUTES.items() if route.change}


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.path} {case.changes} {len(case.rights)}")
def test_a_view_and_a_change_need_their_rights(tmp_path: Path, case: Case) -> None:
    async def scenario() -> None:
        async with guarded(tmp_path) as given:
            before = holds(given)
            for number, right in enumerate(case.rights):
                # All that the case does not need, and all but one of what it does.
                others = [each for each in case.rights if each != right]
                await allow(given, *others, (Operation.ALL, TOPIC, "ledger"), (Operation.ALL, GROUP, "audit"))
                status, body = await send(given, case, BEARER)
                assert (status, "no ACL lets User:page" in body) == (403, True), (number, body)
                assert "secret" not in body
                assert holds(given) == before
                assert given.broker.acls is not None
                await given.broker.acls.delete([AclFilter()], "User:root", Session(given).pace())
            await allow(given, *case.rights)
            status, body = await send(given, case, BEARER)
            assert status == case.status, body
            assert (holds(given) != before) is case.changes

    asyncio.run(scenario())


def test_lists_have_what_may_be_described(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with guarded(tmp_path) as given:
            topics, groups = Case("/", {}, ()), Case("/groups", {}, ())
            _, body = await send(given, topics, BEARER)
            assert "0 topics, 0 partitions" in body
            _, body = await send(given, groups, BEARER)
            assert "0 groups" in body
            await allow(given, (Operation.DESCRIBE, TOPIC, "orders"), (Operation.DESCRIBE, GROUP, "audit"))
            _, body = await send(given, topics, BEARER)
            assert "1 topics, 1 partitions" in body
            assert "ledger" not in body
            _, body = await send(given, groups, BEARER)
            assert "audit" in body
            assert "billing" not in body
            # Of the group's two topics one may be described: the lag of both together is not told.
            _, body = await send(given, Case("/group", {"id": "audit"}, ()), BEARER)
            assert "ledger" not in body
            assert "<dt>lag</dt><dd>\N{EN DASH}</dd>" in body
            await allow(given, (Operation.DESCRIBE, TOPIC, "ledger"), (Operation.DESCRIBE, CLUSTER, CLUSTER_NAME))
            _, body = await send(given, Case("/group", {"id": "audit"}, ()), BEARER)
            assert "<dt>lag</dt><dd>2</dd>" in body
            _, body = await send(given, groups, BEARER)
            assert "billing" in body

    asyncio.run(scenario())


def test_settings_of_a_topic_are_for_who_may_describe_them(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with guarded(tmp_path) as given:
            view = Case("/topic", {"name": "orders"}, ())
            await allow(given, (Operation.DESCRIBE, TOPIC, "orders"))
            _, body = await send(given, view, BEARER)
            assert "compression.type" not in body
            assert "No ACL lets you describe the settings" in body
            await allow(given, (Operation.DESCRIBE_CONFIGS, TOPIC, "orders"))
            assert "compression.type" in (await send(given, view, BEARER))[1]

    asyncio.run(scenario())


def test_a_topic_that_is_not_there_looks_like_one_that_may_not_be_seen(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with guarded(tmp_path) as given:
            answers = [await send(given, Case("/topic", {"name": name}, ()), BEARER) for name in ("ledger", "nothing")]
            assert answers[0][1].replace("ledger", "nothing") == answers[1][1]
            assert answers[0][0] == answers[1][0] == 403

    asyncio.run(scenario())


def test_who_shows_no_token_is_anonymous_where_nobody_has_to(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with guarded(tmp_path, token=None) as given:
            view = Case("/topic", {"name": "orders"}, ())
            await allow(given, (Operation.DESCRIBE, TOPIC, "orders"))  # to who would show a token
            status, body = await send(given, view, BEARER)
            assert (status, "no ACL lets User:ANONYMOUS describe the topic" in body) == (403, True)
            await allow(given, (Operation.DESCRIBE, TOPIC, "orders"), principal="User:ANONYMOUS")
            assert (await send(given, view))[0] == 200

    asyncio.run(scenario())


def test_super_users_and_brokers_without_acls(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with guarded(tmp_path / "1", "super.users=User:page") as given:
            for case in CASES:
                assert (await send(given, case, BEARER))[0] == case.status or case.fields.get("name") == "new"
        async with service(tmp_path / "2", TOKEN) as given:
            for path in ("/brokers", "/settings", "/", "/groups"):
                assert (await send(given, Case(path, {}, ()), BEARER))[0] == 200

    asyncio.run(scenario())


@pytest.mark.parametrize("path", ["/metrics", "/livez", "/readyz"])
def test_no_acl_holds_for_metrics_and_health(tmp_path: Path, path: str) -> None:
    async def scenario() -> None:
        async with guarded(tmp_path) as given:
            assert (await send(given, Case(path, {}, ()), BEARER))[0] == 200

    asyncio.run(scenario())


def test_changes_and_refusals_are_in_the_audit_log(tmp_path: Path) -> None:
    log = tmp_path / "audit.log"

    async def scenario() -> None:
        async with guarded(tmp_path, f"audit.log.file={log}") as given:
            await allow(given, (Operation.CREATE, CLUSTER, CLUSTER_NAME), (Operation.DESCRIBE, TOPIC, "orders"))
            for case in CASES:
                await send(given, case, BEARER)
            await ask(given, post("/create-topic", BEARER, form_token="of another page", name="forged"))

    asyncio.run(scenario())
    names = ("principal", "api", "operation", "resourceName", "result")
    rows = [tuple(json.loads(line)[name] for name in names)[1:] for line in log.read_text().splitlines()]
    assert rows == [
        ("GET /records", "READ", "orders", "Denied"),
        ("GET /group", "DESCRIBE", "billing", "Denied"),
        ("GET /brokers", "DESCRIBE", CLUSTER_NAME, "Denied"),
        ("GET /settings", "DESCRIBE_CONFIGS", CLUSTER_NAME, "Denied"),
        ("POST /create-topic", "CREATE", "new", "Allowed"),
        ("POST /create-topic", "CREATE", "new", "Allowed"),
        ("GET /delete-records", "DELETE", "orders", "Denied"),
        ("POST /delete-records", "DELETE", "orders", "Denied"),
        ("GET /reset-offsets", "READ", "billing", "Denied"),
        ("POST /reset-offsets", "READ", "billing", "Denied"),
    ]


def test_changes_are_in_the_audit_log_without_acls_too(tmp_path: Path) -> None:
    log = tmp_path / "audit.log"

    async def scenario() -> None:
        flags = ("authorizer=none", f"audit.log.file={log}")
        async with guarded(tmp_path, *flags) as given:
            for case in CASES:
                assert (await send(given, case, BEARER))[0] < 500

    asyncio.run(scenario())
    names = ("api", "operation", "resourceName")
    rows = [tuple(json.loads(line)[name] for name in names) for line in log.read_text().splitlines()]
    assert rows == [
        ("POST /create-topic", "CREATE", "new"),
        ("POST /create-topic", "CREATE", "new"),
        ("POST /delete-records", "DELETE", "orders"),
        ("POST /reset-offsets", "READ", "billing"),
        ("POST /reset-offsets", "READ", "orders"),
    ]
