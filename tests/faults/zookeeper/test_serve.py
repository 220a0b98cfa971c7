"""A broker tells ZooKeeper of its listener `legacy://` and of its topics, before it takes connections."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from kazoo.client import KazooClient

from korvet_fast.cli import registration as cli
from korvet_fast.cli.doctor.finding import Verdict
from korvet_fast.cli.doctor.zookeeper import examine_zookeeper
from korvet_fast.cli.registration import BrokerInZooKeeper, make_registration
from korvet_fast.config import Settings, read_settings
from korvet_fast.core.broker import Broker
from korvet_fast.endpoint import Endpoint
from korvet_fast.errors import SettingError
from korvet_fast.store.embedded.store import EmbeddedStore
from korvet_fast.zookeeper.connect_string import ConnectString, read_connect_string
from redis_server import free_port
from zookeeper_server import WITHIN, until

ADVERTISED = (Endpoint("kafka", "127.0.0.1", 9092), Endpoint("legacy", "broker.example.org", 6667))


@asynccontextmanager
async def open_broker(data: Path) -> AsyncIterator[Broker]:
    broker = Broker(EmbeddedStore(data), Settings())
    await broker.open()
    try:
        yield broker
    finally:
        await broker.close()


@asynccontextmanager
async def opened(registration: BrokerInZooKeeper) -> AsyncIterator[None]:
    await registration.open(ADVERTISED)
    try:
        yield
    finally:
        await registration.close()


async def test_the_listener_and_the_topics_of_a_broker(
    tmp_path: Path, where: ConnectString, eyes: KazooClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    def find_topics(broker: Broker) -> Mapping[str, int]:
        return {topic.name: len(topic.partitions) for topic in broker.topics}

    monkeypatch.setattr(cli, "find_topics", find_topics)  # every topic, of whatever layout
    async with open_broker(tmp_path) as broker:
        await broker.topics.create("before", 2, {})
        async with opened(make_registration(broker, where)):
            creator, host, port = eyes.get(f"{where.chroot}/brokers/ids/1")[0].decode().split(":")
            assert (host, port) == ("broker.example.org", "6667")
            assert creator.startswith("broker.example.org-17")
            assert eyes.get(f"{where.chroot}/brokers/topics/before/1")[0] == b"2"
            topic = await broker.topics.create("after", 3, {})
            await until(lambda: eyes.exists(f"{where.chroot}/brokers/topics/after/1"))
            await broker.topics.grow(topic, 5)
            await until(lambda: eyes.get(f"{where.chroot}/brokers/topics/after/1")[0] == b"5")
            await broker.topics.delete(topic)
            await until(lambda: not eyes.exists(f"{where.chroot}/brokers/topics/after/1"))
        assert eyes.get_children(f"{where.chroot}/brokers/ids") == []


async def test_topics_of_other_layouts_are_not_told(tmp_path: Path, where: ConnectString, eyes: KazooClient) -> None:
    async with open_broker(tmp_path) as broker:
        await broker.topics.create("batches", 2, {})
        async with opened(make_registration(broker, where)):
            assert eyes.exists(f"{where.chroot}/brokers/ids/1")
            assert not eyes.exists(f"{where.chroot}/brokers/topics/batches")


async def test_an_address_that_clients_cannot_read_is_refused(tmp_path: Path, where: ConnectString) -> None:
    async with open_broker(tmp_path) as broker:
        with pytest.raises(SettingError, match="IPv6"):
            await make_registration(broker, where).open((Endpoint("legacy", "::1", 6667),))


async def test_doctor_tells_whether_zookeeper_answers_and_the_id_is_free(
    where: ConnectString, eyes: KazooClient
) -> None:
    finding = await asyncio.wait_for(examine_zookeeper(where, Settings()), WITHIN)
    assert (finding.verdict, finding.sentence) == (Verdict.GOOD, f"{where} answers")
    eyes.create(f"{where.chroot}/brokers/ids/1", b"a-1:a:2", makepath=True, ephemeral=True)
    finding = await asyncio.wait_for(examine_zookeeper(where, Settings()), WITHIN)
    assert (finding.verdict, "taken, by a-1:a:2" in finding.sentence) == (Verdict.WARN, True)


async def test_doctor_tells_that_nobody_answers() -> None:
    settings = read_settings(["zookeeper.connection.timeout.ms=100"])
    finding = await examine_zookeeper(read_connect_string(f"127.0.0.1:{free_port()}"), settings)
    assert (finding.verdict, "cannot be reached" in finding.sentence) == (Verdict.WARN, True)
