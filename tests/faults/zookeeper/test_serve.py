"""A broker tells ZooKeeper of its listener `legacy://` and of its topics, before it takes connections."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from kazoo.client import KazooClient

from broker_process import BrokerProcess
from faults.proxy import Fault, start_proxy
from korvet_fast.cli.doctor.finding import Verdict
from korvet_fast.cli.doctor.zookeeper import examine_zookeeper
from korvet_fast.cli.registration import BrokerInZooKeeper, make_registration
from korvet_fast.config import Settings, read_settings
from korvet_fast.core.broker import Broker
from korvet_fast.endpoint import Endpoint
from korvet_fast.errors import SettingError
from korvet_fast.store.embedded.store import EmbeddedStore
from korvet_fast.zookeeper.connect_string import ConnectString, read_connect_string
from korvet_reference.legacy_client import LegacyClient
from redis_server import free_port
from zookeeper_server import WITHIN, ZooKeeperServer, until

LAYOUT = {"storage.layout": "legacy"}
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


async def test_the_listener_and_the_topics_of_a_broker(tmp_path: Path, where: ConnectString, eyes: KazooClient) -> None:
    async with open_broker(tmp_path) as broker:
        await broker.topics.create("before", 2, LAYOUT)
        async with opened(make_registration(broker, where)):
            creator, host, port = eyes.get(f"{where.chroot}/brokers/ids/1")[0].decode().split(":")
            assert (host, port) == ("broker.example.org", "6667")
            assert creator.startswith("broker.example.org-17")
            assert eyes.get(f"{where.chroot}/brokers/topics/before/1")[0] == b"2"
            topic = await broker.topics.create("after", 3, LAYOUT)
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


def serve(data: Path, port: int, where: str, *settings: str) -> BrokerProcess:
    arguments = ("--listen", f"legacy://127.0.0.1:{port}", "--zookeeper", where)
    return BrokerProcess(data, *settings, arguments=arguments)


async def test_a_broker_whose_id_is_taken_does_not_start(
    tmp_path: Path, where: ConnectString, eyes: KazooClient
) -> None:
    ports = free_port(), free_port()
    patient = "zookeeper.session.timeout.ms=60000"  # it has its id while the other one starts, on a busy machine too
    with serve(tmp_path / "first", ports[0], str(where), "node.id=3", patient):
        second = serve(tmp_path / "second", ports[1], str(where), "node.id=3")
        with pytest.raises(AssertionError, match="did not become ready"):
            await asyncio.to_thread(second.start)
        said = "".join(second.log)
        assert f"broker id 3 is taken in ZooKeeper {where}, by 127.0.0.1-" in said
        assert f":127.0.0.1:{ports[0]}: give this broker another one, --set node.id=NUMBER" in said
        assert "Traceback" not in said
        assert eyes.get_children(f"{where.chroot}/brokers/ids") == ["3"]
        with LegacyClient("127.0.0.1", ports[0]) as client:  # the first one serves on
            assert client.fetch("nope", 0, 0) == b""


async def test_requests_wait_until_the_broker_is_registered(shared_zookeeper: ZooKeeperServer, tmp_path: Path) -> None:
    """Section 9: it listens, then its nodes are made, then requests are answered."""
    passing = asyncio.Event()
    async with start_proxy(shared_zookeeper.port, lambda _: Fault(requests=passing)) as proxy:
        port = free_port()
        broker = serve(tmp_path, port, f"127.0.0.1:{proxy.port}/waiting", "zookeeper.connection.timeout.ms=120000")
        starting = asyncio.create_task(asyncio.to_thread(broker.start))
        try:
            await until(lambda: proxy.accepted)
            with await asyncio.to_thread(LegacyClient, "127.0.0.1", port, 1.0) as client:
                with pytest.raises(TimeoutError):
                    await asyncio.to_thread(client.fetch, "nope", 0, 0)
                assert not starting.done()
                passing.set()
                await starting
                client.socket.settimeout(WITHIN)
                assert await asyncio.to_thread(client.answer) == b"\0\0"
        finally:
            passing.set()
            await starting
            await asyncio.to_thread(broker.stop)


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
