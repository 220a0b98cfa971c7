"""Bytes of clients without ids, on listeners of the text protocol and of Kafka 0.7: counted, and muted."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from core_world import StillClock
from kafka_server import KafkaServer, kafka_server, run
from korvet_fast.core.quotas.entity import DEFAULT, QuotaEntity, QuotaKey
from korvet_fast.wire.legacy.dialect import LegacyDialect
from korvet_fast.wire.text.dialect import TextDialect
from korvet_reference import legacy_client

ANONYMOUS = QuotaEntity("ANONYMOUS", DEFAULT)  # clients without an id have the default one
RATE = 100.0


@asynccontextmanager
async def connected(
    server: KafkaServer, dialect: type[TextDialect] | type[LegacyDialect]
) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """A client at a listener of this dialect."""
    listener = socket.create_server(("127.0.0.1", 0))
    listener.setblocking(False)
    server.server.listen(listener, dialect(server.broker, 0, server.workers))
    reader, writer = await asyncio.open_connection(*listener.getsockname())
    try:
        yield reader, writer
    finally:
        writer.close()


async def limit(server: KafkaServer, key: QuotaKey) -> None:
    await server.broker.quota_registry.alter(ANONYMOUS, {key: RATE}, "User:root", validate=False)


def unmute(server: KafkaServer) -> None:
    for connection in list(server.server.connections):
        connection._requests.unmute()


async def until_throttled(server: KafkaServer, key: QuotaKey) -> None:
    while not server.broker.quotas.throttled[key]:
        await asyncio.sleep(0.001)


def test_lines_of_text_count(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with (
            kafka_server(tmp_path, clock=StillClock()) as server,
            connected(server, TextDialect) as (reader, writer),
        ):
            await limit(server, QuotaKey.PRODUCE)
            produce = b"V1|1|PRODUCE|t k:" + b"v" * 3000 + b"\n"
            writer.write(produce + b"V1|2|PING|\n")
            assert (await reader.readline()).startswith(b"V1|1|OK|")
            pong = asyncio.ensure_future(reader.readline())
            await asyncio.sleep(0.05)
            assert not pong.done()
            assert server.broker.quotas.throttled == {QuotaKey.PRODUCE: 1}
            unmute(server)
            assert await pong == b"V1|2|OK|pong\n"
            await limit(server, QuotaKey.FETCH)
            writer.write(b"V1|3|CONSUME|t 0 0\nV1|4|PING|\n")
            assert b"v" * 3000 in await reader.readline()
            assert server.broker.quotas.throttled[QuotaKey.FETCH] == 1
            unmute(server)
            assert await reader.readline() == b"V1|4|OK|pong\n"

    run(scenario)


def test_messages_of_kafka_07_count(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with (
            kafka_server(tmp_path, clock=StillClock()) as server,
            connected(server, LegacyDialect) as (reader, writer),
        ):
            await limit(server, QuotaKey.PRODUCE)
            await limit(server, QuotaKey.FETCH)
            messages = legacy_client.encode_message(bytes(3000))
            writer.write(legacy_client.encode_request(0, legacy_client.produce_body("t", 0, messages)))
            await until_throttled(server, QuotaKey.PRODUCE)
            fetch = legacy_client.encode_request(1, legacy_client.fetch_body("t", 0, 0, 10_000))
            writer.write(fetch)
            answer = asyncio.ensure_future(reader.readexactly(6 + len(messages)))
            await asyncio.sleep(0.05)
            assert not answer.done()
            unmute(server)
            assert messages in await answer
            assert server.broker.quotas.throttled == {QuotaKey.PRODUCE: 1, QuotaKey.FETCH: 1}

    run(scenario)
