"""ACLs: every API and version, allowed and denied, with the answers of the table; and what the table cannot say."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import acl_cases
from acl_cases import AUTHORIZATION, WHO, Case, cluster_bindings
from kafka_server import (
    KafkaServer,
    RawClient,
    kafka_server,
    run,
)
from korvet_fast.core.acls.binding import AclBinding, AclFilter, Operation, PatternType, Permission, ResourceType
from korvet_fast.wire.kafka.access import ACCESS
from korvet_fast.wire.kafka.routes import ROUTES

TOPIC, GROUP, CLUSTER = ResourceType.TOPIC, ResourceType.GROUP, ResourceType.CLUSTER
SETTINGS = ("authorizer=acl", "super.users=User:root", "group.initial.rebalance.delay.ms=0")


@asynccontextmanager
async def guarded(data: Path, *settings: str) -> AsyncIterator[tuple[KafkaServer, RawClient]]:
    async with kafka_server(data, *SETTINGS, *settings) as server:
        yield server, await server.connect()


async def allow(
    server: KafkaServer,
    operation: Operation,
    name: str,
    resource: ResourceType = TOPIC,
    permission: Permission = Permission.ALLOW,
    pattern: PatternType = PatternType.LITERAL,
    host: str = "*",
) -> None:
    assert server.broker.acls is not None
    binding = AclBinding(resource, name, pattern, WHO, host, operation, permission)
    await server.broker.acls.create([binding], "User:root")


async def set_cluster(server: KafkaServer, bindings: list[AclBinding]) -> None:
    """Replace the ACLs of the cluster by these."""
    acls = server.broker.acls
    assert acls is not None
    await acls.delete([AclFilter(CLUSTER)], "User:root", server.dialect.session("127.0.0.1").pace())
    await acls.create(bindings, "User:root")


async def make_topics(server: KafkaServer, *names: str) -> None:
    for name in names:
        await server.broker.topics.create(name, 1, {})


def test_every_route_is_in_the_table() -> None:
    assert ACCESS.keys() == ROUTES.keys()


def test_every_api_in_every_version_is_allowed_and_denied_as_the_table_says(tmp_path: Path) -> None:
    wrong: list[str] = []

    async def ask(client: RawClient, case: Case) -> None:
        client.send(case.key, case.version, dict(case.values))
        codes = case.find_codes(await asyncio.wait_for(client.reply(), 30))
        if case.allowed:
            if not codes or set(codes) & AUTHORIZATION:
                wrong.append(f"{case}: {codes}")
        elif not codes or set(codes) != {acl_cases.error_of(case)}:
            wrong.append(f"{case}: {codes}")

    async def scenario() -> None:
        every = acl_cases.cases()
        assert len(every) > 400
        async with guarded(tmp_path / "data", "auto.create.topics.enable=true") as (server, client):
            await make_topics(server, *acl_cases.topics())
            assert server.broker.acls is not None
            await server.broker.acls.create(list(acl_cases.bindings()), "User:root")
            for case in every:
                if case.right.resource is CLUSTER:
                    await set_cluster(server, cluster_bindings(case.kind, case.right.operation))
                    await ask(client, case)
                    await set_cluster(server, [])
                else:
                    await ask(client, case)
        assert wrong == []

    run(scenario)
