"""The same ACLs on listeners of the text protocol and of Kafka 0.7: clients are known by address or certificate."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from kafka_server import kafka_server, run
from korvet_fast.core.acls.binding import AclBinding, Operation, PatternType, Permission, ResourceType
from korvet_fast.core.broker import Broker
from korvet_fast.core.fair_executor import FairExecutor
from korvet_fast.wire.dialect import CloseConnection
from korvet_fast.wire.legacy.dialect import LegacyDialect
from korvet_fast.wire.text.access import ACCESS
from korvet_fast.wire.text.commands import COMMANDS
from korvet_fast.wire.text.dialect import TextDialect
from korvet_reference import legacy_client

TOPIC, GROUP, CLUSTER = ResourceType.TOPIC, ResourceType.GROUP, ResourceType.CLUSTER


@asynccontextmanager
async def guarded(data: Path) -> AsyncIterator[tuple[Broker, FairExecutor]]:
    async with kafka_server(data, "authorizer=acl", "auto.create.topics.enable=true") as server:
        yield server.broker, server.workers


async def allow(broker: Broker, operation: Operation, name: str, resource: ResourceType = TOPIC, **more: str) -> None:
    assert broker.acls is not None
    given = {"principal": "User:*", "host": "*"} | more
    binding = AclBinding(
        resource, name, PatternType.LITERAL, given["principal"], given["host"], operation, Permission.ALLOW
    )
    await broker.acls.create([binding], "User:root")


class TextClient:
    """Lines to a session, as a connection gives them."""

    def __init__(self, broker: Broker, workers: FairExecutor, peer: str = "10.0.0.1", principal: str = "") -> None:
        self._dialect = TextDialect(broker, 0, workers)
        self._session = self._dialect.session(peer)
        if principal:
            self._session.principal = principal

    async def ask(self, *lines: str) -> list[str]:
        data = "".join(f"V1|1|{line}\n" for line in lines).encode()
        frames = self._dialect.frames().feed(data, 100)
        return "".join([b"".join(await self._session.handle(frame)).decode() for frame in frames]).splitlines()


def test_every_text_command_is_in_the_table() -> None:
    assert ACCESS.keys() == COMMANDS.keys()


def test_text_lines_need_the_rights_of_kafkas_requests(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with guarded(tmp_path / "data") as (broker, workers):
            client = TextClient(broker, workers)
            refused = "V1|1|ERR|UNAUTHORIZED|no ACL lets this client do that to the topic"
            assert await client.ask("PRODUCE|mine k:v") == [refused]
            await allow(broker, Operation.WRITE, "mine")
            assert await client.ask("PRODUCE|mine k:v") == [refused]  # it would have to be created
            assert broker.topics.get("mine") is None
            await allow(broker, Operation.CREATE, "mine")
            # One run, with lines for a topic that is allowed and for one that is not.
            answers = await client.ask("PRODUCE|mine k:v", "PRODUCE|other k:v", "PRODUCE|mine k:w")
            assert [answer.startswith("V1|1|OK|") for answer in answers] == [True, False, True]
            assert answers[1] == refused
            assert broker.topics.get("other") is None
            assert await client.ask("CONSUME|mine 0 0") == [refused]
            await allow(broker, Operation.READ, "mine")
            assert (await client.ask("CONSUME|mine 0 0"))[0].startswith("V1|1|OK|")
            of_group = "V1|1|ERR|UNAUTHORIZED|no ACL lets this client do that to the group"
            for line in (
                "JOIN|g mine c",
                "SYNC|g mine c 1",
                "HEARTBEAT|g mine c 1",
                "LEAVE|g mine c 1",
                "COMMIT|g mine c 1 0 0",
                "OFFSET|g mine 0",
            ):
                assert await client.ask(line) == [of_group], line
            await allow(broker, Operation.READ, "g", GROUP)
            assert (await client.ask("JOIN|g mine c"))[0].startswith("V1|1|OK|")
            assert await client.ask("JOIN|g other c") == [refused]
            assert await client.ask("PING|") == ["V1|1|OK|pong"]

    run(scenario)


def test_a_text_client_is_known_by_its_address_and_by_its_certificate(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with guarded(tmp_path / "data") as (broker, workers):
            await allow(broker, Operation.CREATE, "kafka-cluster", CLUSTER)
            await allow(broker, Operation.WRITE, "a", host="10.0.0.7")
            await allow(broker, Operation.WRITE, "b", principal="User:CN=ann")
            for peer, principal, allowed in (
                ("10.0.0.7", "", [True, False]),
                ("::ffff:10.0.0.7", "", [True, False]),
                ("10.0.0.8", "", [False, False]),
                ("10.0.0.8", "User:CN=ann", [False, True]),
            ):
                client = TextClient(broker, workers, peer, principal)
                answers = await client.ask("PRODUCE|a k:v", "PRODUCE|b k:v")
                assert [answer.startswith("V1|1|OK|") for answer in answers] == allowed, (peer, principal)

    run(scenario)


def test_clients_of_kafka_07_need_the_same_rights(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with guarded(tmp_path / "data") as (broker, workers):
            dialect = LegacyDialect(broker, 0, workers)

            async def ask(number: int, body: bytes) -> bytes:
                frame = bytearray(legacy_client.encode_request(number, body)[4:])
                answer = await dialect.session("10.0.0.1").handle(frame)
                return b"".join(bytes(part) for part in answer)

            messages = legacy_client.encode_message(b"hello")
            produce = legacy_client.produce_body("mine", 0, messages)
            with pytest.raises(CloseConnection, match="no ACL lets User:ANONYMOUS write"):
                await ask(0, produce)
            await allow(broker, Operation.WRITE, "mine")
            with pytest.raises(CloseConnection, match="were not stored"):
                await ask(0, produce)  # it would have to be created
            assert broker.topics.get("mine") is None
            await allow(broker, Operation.CREATE, "mine")
            await ask(0, produce)
            assert broker.topics.get("mine") is not None
            fetch = legacy_client.fetch_body("mine", 0, 0, 1000)
            assert (await ask(1, fetch))[4:6] == b"\xff\xff"
            await allow(broker, Operation.READ, "mine")
            await asyncio.sleep(0)
            assert b"hello" in await ask(1, fetch)
            offsets = (
                legacy_client.encode_name("secret") + (0).to_bytes(4, "big") + b"\xff" * 8 + (1).to_bytes(4, "big")
            )
            with pytest.raises(CloseConnection, match="describe 'secret'"):
                await ask(4, offsets)

    run(scenario)
