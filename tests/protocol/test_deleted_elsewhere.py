"""Two brokers over one Redis: what one of them keeps of topics that the other one deletes."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import NamedTuple

import pytest

from batches import read_values
from kafka_server import DELETE_TOPICS, KafkaServer, RawClient, error_of, kafka_server, make_batch, run
from korvet_fast.errors import Errors
from korvet_fast.store.redis.connection.url import parse_url
from korvet_fast.store.redis.store import RedisStore
from raw_connection import find_leaders
from redis_server import RedisServer

PARTITIONS = 4


class RunningBroker(NamedTuple):
    """A broker, its store, and a client of it."""

    server: KafkaServer
    store: RedisStore
    client: RawClient

    @property
    def logs(self) -> set[str]:
        """The logs that its store has in memory."""
        return set(self.store._logs)


@asynccontextmanager
async def serve(redis_server: RedisServer, number: int) -> AsyncIterator[RunningBroker]:
    store = RedisStore(parse_url(redis_server.url))
    settings = (f"node.id={number}", "broker.heartbeat.interval.ms=50")
    async with kafka_server(store, *settings) as server:
        yield RunningBroker(server, store, await server.connect())


async def wait_for_leaders(brokers: list[RunningBroker], topic: str) -> list[RunningBroker]:
    """The leader of each partition, once all brokers tell the same and each of them leads some."""
    by_port = {broker.server.address.port: broker for broker in brokers}
    while True:
        told = [await find_leaders(broker.client, topic) for broker in brokers]
        if all(row == told[0] for row in told) and set(told[0]) == by_port.keys():
            return [by_port[port] for port in told[0]]
        await asyncio.sleep(0.01)


@pytest.mark.parametrize("layout", ["entries", "batches"])
def test_topics_that_another_broker_deletes_leave_nothing_behind(
    redis_server: RedisServer, monkeypatch: pytest.MonkeyPatch, layout: str
) -> None:
    """Made, written to, read and deleted again and again under one name; the topic that stays keeps its logs."""
    monkeypatch.setattr("korvet_fast.core.broker._IDLE_INTERVAL", 0.01)

    async def scenario() -> None:
        async with serve(redis_server, 1) as one, serve(redis_server, 2) as two:
            brokers = [one, two]
            assert error_of(await one.client.create("kept", PARTITIONS, storage_layout=layout)) == ""
            await wait_for_leaders(brokers, "kept")
            before = [broker.logs for broker in brokers]
            for number in range(4):
                assert error_of(await one.client.create("t", PARTITIONS, storage_layout=layout)) == ""
                for index, leader in enumerate(await wait_for_leaders(brokers, "t")):
                    row = await leader.client.produce("t", make_batch(b"%d" % number), index=index)
                    assert error_of(row) == ""
                    found = await leader.client.fetch("t", row["base_offset"], index=index)
                    assert read_values(found["records"]) == [b"%d" % number]
                    assert f"t:{index}" in leader.logs
                deleting = brokers[number % 2]
                answer = await deleting.client.ask(DELETE_TOPICS, 6, topics=[{"name": "t"}], timeout_ms=10_000)
                assert error_of(answer["responses"][0]) == Errors.NONE
                while [broker.logs for broker in brokers] != before:
                    await asyncio.sleep(0.01)

    run(scenario)
