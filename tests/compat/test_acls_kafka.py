"""The same requests under the same ACLs at Apache Kafka with its StandardAuthorizer, and here: the same answers."""

import asyncio
import struct
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import pytest

import acl_cases
from acl_cases import AUTHORIZATION, Case, cluster_bindings
from faults.producer_brokers import SmallKafka
from kafka_server import (
    API_VERSIONS,
    CREATE_ACLS,
    CREATE_TOPICS,
    DELETE_ACLS,
    SASL_HANDSHAKE,
    RawClient,
    frame,
    kafka_server,
)
from korvet_fast.core.acls.binding import AclBinding, AclFilter, ResourceType
from redis_server import free_port

pytestmark = pytest.mark.timeout(600)

_AUTHENTICATE: Final = 36  # SaslAuthenticate's key
_PATIENCE: Final = 20.0  # seconds in which a broker of Kafka's has heard of an ACL
_LOGIN: Final = (
    "org.apache.kafka.common.security.plain.PlainLoginModule required "
    'username="admin" password="admin" user_admin="admin";'
)
_PROPERTIES: Final = """
listeners=PLAINTEXT://127.0.0.1:{port},ADMIN://127.0.0.1:{admin},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{port},ADMIN://127.0.0.1:{admin}
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,ADMIN:SASL_PLAINTEXT,CONTROLLER:SASL_PLAINTEXT
inter.broker.listener.name=ADMIN
sasl.enabled.mechanisms=PLAIN
sasl.mechanism.inter.broker.protocol=PLAIN
sasl.mechanism.controller.protocol=PLAIN
listener.name.admin.plain.sasl.jaas.config={login}
listener.name.controller.plain.sasl.jaas.config={login}
authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
super.users=User:admin
"""


class AclKafka(SmallKafka):
    """Clients without a password come by `port`, the super user by `admin`."""

    def __init__(self, place: Path) -> None:
        super().__init__(place)
        self.admin = free_port()

    def prepare(self) -> None:
        super().prepare()
        file = self.directory / "server.properties"
        kept = [line for line in file.read_text().splitlines() if not line.startswith(("listeners=", "advertised."))]
        added = _PROPERTIES.format(
            port=self.port, admin=self.admin, controller=self.controllers[self.identity], login=_LOGIN
        )
        file.write_text("\n".join(kept) + added)


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AclKafka]:
    with AclKafka(tmp_path_factory.mktemp("kafka")) as server:
        yield server


async def log_in(client: RawClient) -> None:
    """SASL PLAIN as the super user."""
    assert (await client.ask(SASL_HANDSHAKE, 1, mechanism="PLAIN"))["error_code"] == 0
    login = b"\0admin\0admin"
    client.writer.write(frame(struct.pack(">hhihi", _AUTHENTICATE, 0, 1, -1, len(login)) + login))
    assert (await client.raw_reply())[4:6] == b"\0\0"


async def create(admin: RawClient, bindings: Sequence[AclBinding]) -> None:
    rows = [
        {
            "resource_type": one.resource,
            "resource_name": one.name,
            "resource_pattern_type": one.pattern,
            "principal": one.principal,
            "host": one.host,
            "operation": one.operation,
            "permission_type": one.permission,
        }
        for one in bindings
    ]
    answer = await admin.ask(CREATE_ACLS, 3, creations=rows)
    assert {row["error_code"] for row in answer["results"]} <= {0}


async def wait_for_coordinator(admin: RawClient) -> None:
    """Kafka makes its topic of groups when a client first asks who coordinates one, and then has to load it."""
    codes = {-1}
    while codes != {0}:
        found = await admin.ask(10, 4, key_type=0, coordinator_keys=[acl_cases.OPEN])
        kept = await admin.ask(9, 8, groups=[{"group_id": acl_cases.OPEN, "topics": None}])
        codes = {row["error_code"] for row in (*found["coordinators"], *kept["groups"])}
        await asyncio.sleep(0.1)


async def clear_cluster(admin: RawClient) -> None:
    every: dict[str, Any] = {"resource_type_filter": ResourceType.CLUSTER, "resource_name_filter": None}
    every |= {"pattern_type_filter": 1, "principal_filter": None, "host_filter": None}
    answer = await admin.ask(DELETE_ACLS, 3, filters=[every | {"operation": 1, "permission_type": 1}])
    assert answer["filter_results"][0]["error_code"] == 0


async def ask(client: RawClient, case: Case) -> set[int]:
    """The codes of an answer that have to do with rights; empty where there is none."""
    client.send(case.key, case.version, dict(case.values))
    return set(case.find_codes(await asyncio.wait_for(client.reply(), 60))) & AUTHORIZATION


def test_the_answers_are_those_of_apache_kafka(kafka: AclKafka, tmp_path: Path) -> None:
    async def scenario() -> None:
        settings = ("authorizer=acl", "super.users=User:root", "group.initial.rebalance.delay.ms=0")
        async with kafka_server(tmp_path / "data", *settings) as server:
            acls = server.broker.acls
            assert acls is not None
            theirs = RawClient(*await asyncio.open_connection("127.0.0.1", kafka.port))
            admin = RawClient(*await asyncio.open_connection("127.0.0.1", kafka.admin))
            server.clients += [theirs, admin]
            await log_in(admin)
            rows = [{"name": name, "num_partitions": 1, "replication_factor": 1} for name in acl_cases.topics()]
            answer = await admin.ask(CREATE_TOPICS, 7, topics=rows, timeout_ms=30_000)
            assert {row["error_code"] for row in answer["topics"]} == {0}
            for name in acl_cases.topics():
                await server.broker.topics.create(name, 1, {})
            every = list(acl_cases.bindings())
            await acls.create(every, "User:root")
            await create(admin, every)
            await wait_for_coordinator(admin)
            told = await theirs.ask(API_VERSIONS, 3, client_software_name="test", client_software_version="1")
            served = {row["api_key"]: row for row in told["api_keys"]}
            ours = await server.connect()  # now: a connection has to ask within ten seconds
            asked, wrong = 0, []
            session = server.dialect.session("127.0.0.1")
            for case in acl_cases.cases():
                if not served[case.key]["min_version"] <= case.version <= served[case.key]["max_version"]:
                    continue
                asked += 1
                if case.right.resource is ResourceType.CLUSTER:
                    step = cluster_bindings(case.kind, case.right.operation)
                    await acls.delete([AclFilter(ResourceType.CLUSTER)], "User:root", session.pace())
                    await clear_cluster(admin)
                    if step:
                        await acls.create(step, "User:root")
                        await create(admin, step)
                found, until = await ask(ours, case), asyncio.get_running_loop().time() + _PATIENCE
                # Kafka's brokers hear of ACLs a moment after they are created.
                while (wanted := await ask(theirs, case)) != found and asyncio.get_running_loop().time() < until:
                    await asyncio.sleep(0.1)
                if wanted != found:
                    wrong.append(f"{case}: Kafka {wanted}, here {found}")
            assert wrong == []
            assert asked >= 400, asked

    asyncio.run(scenario())  # for as long as this file may take
