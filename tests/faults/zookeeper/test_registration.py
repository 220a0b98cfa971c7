"""A broker's nodes in a real ZooKeeper: made, kept, made again; and a broker that goes on without it."""

import asyncio
import logging
import shutil
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest
from kazoo.client import KazooClient
from kazoo.security import READ_ACL_UNSAFE

from faults.proxy import Fault, start_proxy
from korvet_fast.endpoint import Address
from korvet_fast.zookeeper.connect_string import ConnectString, read_connect_string
from korvet_fast.zookeeper.nodes import broker_value
from korvet_fast.zookeeper.registration import IdTaken, ZooKeeperRegistration
from korvet_fast.zookeeper.session import Node, ZooKeeperSession
from redis_server import free_port
from zookeeper_server import WITHIN, ZooKeeperServer, connect, until

SESSION = 400  # ms: short, so that what a dead broker left behind goes soon
VALUE = broker_value(Address("127.0.0.1", 9192), 1795217494796)
Topics = dict[str, int]


def make(where: ConnectString, topics: Topics, session: int = SESSION, patience: int = 60_000) -> ZooKeeperRegistration:
    return ZooKeeperRegistration(where, session, patience, lambda: topics)


@asynccontextmanager
async def registered(
    where: ConnectString, topics: Topics, broker: int = 0, value: str = VALUE, session: int = 10_000
) -> AsyncIterator[ZooKeeperRegistration]:
    registration = make(where, topics, session)
    await registration.open(broker, value)
    try:
        yield registration
    finally:
        await registration.close()


def children(eyes: KazooClient, path: str) -> list[str]:
    return sorted(eyes.get_children(path)) if eyes.exists(path) else []


async def test_section_9_the_nodes_of_a_broker(where: ConnectString, eyes: KazooClient) -> None:
    async with registered(where, {"tp5": 2, "täg lich": 1}) as registration:
        assert registration.registered
        value, stat = eyes.get(f"{where.chroot}/brokers/ids/0")
        assert value == b"127.0.0.1-1795217494796:127.0.0.1:9192"
        session = stat.ephemeralOwner
        assert session != 0
        made_after = stat.czxid
        for topic, partitions in (("tp5", b"2"), ("täg lich", b"1")):
            value, stat = eyes.get(f"{where.chroot}/brokers/topics/{topic}/0")
            assert (value, stat.ephemeralOwner) == (partitions, session)
            assert stat.czxid > made_after, "the id comes first, then the topics"
            made_after = stat.czxid
        for parent in ("", "/brokers", "/brokers/ids", "/brokers/topics", "/brokers/topics/tp5"):
            value, stat = eyes.get(where.chroot + parent)
            assert (value, stat.dataLength, stat.ephemeralOwner) == (None, 0, 0), parent
    assert children(eyes, f"{where.chroot}/brokers/ids") == []
    assert children(eyes, f"{where.chroot}/brokers/topics") == ["tp5", "täg lich"], "the parents stay"
    assert children(eyes, f"{where.chroot}/brokers/topics/tp5") == []


async def test_without_a_chroot_everything_is_at_the_root(shared_zookeeper: ZooKeeperServer, eyes: KazooClient) -> None:
    async with registered(read_connect_string(shared_zookeeper.address), {"of the root": 1}, broker=77):
        assert eyes.get("/brokers/ids/77")[0] == VALUE.encode()
        assert eyes.get("/brokers/topics/of the root/77")[0] == b"1"


async def test_topics_come_grow_and_go(where: ConnectString, eyes: KazooClient) -> None:
    topics = {"first": 1}
    async with registered(where, topics) as registration:
        topics["second"] = 4
        registration.refresh()
        await until(lambda: eyes.exists(f"{where.chroot}/brokers/topics/second/0"))
        before = eyes.get(f"{where.chroot}/brokers/topics/second/0")[1]
        topics["second"] = 6
        registration.refresh()
        await until(lambda: eyes.get(f"{where.chroot}/brokers/topics/second/0")[0] == b"6")
        assert eyes.get(f"{where.chroot}/brokers/topics/second/0")[1].czxid == before.czxid, "consumers see no absence"
        del topics["first"]
        registration.refresh()
        await until(lambda: not eyes.exists(f"{where.chroot}/brokers/topics/first/0"))
        assert eyes.exists(f"{where.chroot}/brokers/topics/first")


async def test_several_brokers_have_a_node_each_below_one_topic(where: ConnectString, eyes: KazooClient) -> None:
    other = broker_value(Address("127.0.0.1", 9193), 1795217494797)
    async with registered(where, {"tp5": 2}, broker=0):
        async with registered(where, {"tp5": 8}, broker=1, value=other):
            assert children(eyes, f"{where.chroot}/brokers/ids") == ["0", "1"]
            found = [eyes.get(f"{where.chroot}/brokers/topics/tp5/{broker}")[0] for broker in (0, 1)]
            assert found == [b"2", b"8"]
        assert children(eyes, f"{where.chroot}/brokers/topics/tp5") == ["0"]


async def test_an_id_that_another_broker_has_is_refused(where: ConnectString, eyes: KazooClient) -> None:
    async with registered(where, {}):
        second = make(where, {"tp5": 2})
        with pytest.raises(IdTaken) as refused:
            await second.open(0, broker_value(Address("127.0.0.1", 9193), 1))
        for words in ("broker id 0", str(where), VALUE, "--set node.id=NUMBER", "wait 0.4 s"):
            assert words in str(refused.value)
        assert children(eyes, f"{where.chroot}/brokers/topics") == []
        assert eyes.get(f"{where.chroot}/brokers/ids/0")[0] == VALUE.encode()


async def test_a_broker_that_died_has_its_id_until_its_session_ends(where: ConnectString, eyes: KazooClient) -> None:
    path = f"{where.chroot}/brokers/ids/0"
    left = broker_value(Address("127.0.0.1", 9192), 1)
    eyes.create(path, left.encode(), makepath=True, ephemeral=True)
    with pytest.raises(IdTaken):
        await make(where, {}).open(0, VALUE)
    eyes.delete(path)
    async with registered(where, {}):
        assert eyes.get(path)[0] == VALUE.encode()


async def test_what_an_earlier_session_of_this_broker_left_is_made_again(
    where: ConnectString, eyes: KazooClient
) -> None:
    """Otherwise the nodes would go when ZooKeeper notices that session's end."""
    paths = [f"{where.chroot}/brokers/ids/0", f"{where.chroot}/brokers/topics/tp5/0"]
    for path, value in zip(paths, (VALUE, "2"), strict=True):
        eyes.create(path, value.encode(), makepath=True, ephemeral=True)
    async with registered(where, {"tp5": 2}):
        owners = [eyes.get(path)[1].ephemeralOwner for path in paths]
        assert owners[0] == owners[1]
        assert owners[0] != eyes.client_id[0]


async def test_a_session_that_expires_is_followed_by_another(
    shared_zookeeper: ZooKeeperServer, eyes: KazooClient
) -> None:
    """ZooKeeper hears nothing of the broker for longer than a session lasts, while both of them live."""
    passing = asyncio.Event()
    passing.set()
    async with start_proxy(shared_zookeeper.port, lambda _: Fault(requests=passing)) as proxy:
        where = read_connect_string(f"127.0.0.1:{proxy.port}/expiry")
        async with registered(where, {"a": 1, "b": 2}, session=4000) as registration:
            paths = ["/expiry/brokers/ids/0", "/expiry/brokers/topics/a/0", "/expiry/brokers/topics/b/0"]
            first = session_of(eyes, paths[0])
            passing.clear()
            await until(lambda: not any(session_of(eyes, path) for path in paths))
            passing.set()
            await until(lambda: registration.registered and all(session_of(eyes, path) for path in paths))
            assert first not in {session_of(eyes, path) for path in paths}
            assert [eyes.get(path)[0] for path in paths] == [VALUE.encode(), b"1", b"2"]


def session_of(eyes: KazooClient, path: str) -> int:
    """The session that a node lives with; 0: there is no such node."""
    found = eyes.exists(path)
    return found.ephemeralOwner if found is not None else 0


async def test_a_session_goes_on_at_another_of_several_servers(
    shared_zookeeper: ZooKeeperServer, eyes: KazooClient
) -> None:
    """Two ways to one ZooKeeper, and a third address where nobody listens; the way that is used ends."""
    async with AsyncExitStack() as ways:
        proxies, stacks = [], []
        for _ in range(2):
            stack = await ways.enter_async_context(AsyncExitStack())
            proxy = await stack.enter_async_context(start_proxy(shared_zookeeper.port, lambda _: Fault()))
            proxies.append(proxy)
            stacks.append(stack)
        hosts = ",".join(f"127.0.0.1:{port}" for port in (free_port(), *(proxy.port for proxy in proxies)))
        topics = {"a": 1}
        # A long session: kazoo gives an address only a share of it before it tries the next one.
        async with registered(read_connect_string(f"{hosts}/several"), topics, session=60_000) as registration:
            session = session_of(eyes, "/several/brokers/ids/0")
            used = 0 if proxies[0].accepted else 1
            assert session and not proxies[1 - used].accepted
            await stacks[used].aclose()
            await until(lambda: proxies[1 - used].accepted and registration.registered)
            topics["b"] = 2
            registration.refresh()
            await until(lambda: session_of(eyes, "/several/brokers/topics/b/0"))
            for path in ("ids/0", "topics/a/0", "topics/b/0"):
                assert session_of(eyes, f"/several/brokers/{path}") == session


async def test_a_broker_goes_on_while_zookeeper_is_away_and_says_so_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="korvet_fast.zookeeper")
    with ZooKeeperServer(tmp_path) as server:
        topics = {"a": 1}
        where = read_connect_string(f"{server.address}/away")
        async with registered(where, topics) as registration:
            server.stop()
            await until(lambda: not registration.registered)
            topics["b"] = 2
            for _ in range(20):
                registration.refresh()
                await asyncio.sleep(0.05)
            server.start()
            await until(lambda: registration.registered)
            with connect(server, "/away") as eyes:
                await until(lambda: children(eyes, "/brokers/topics/b") == ["0"])
                assert children(eyes, "/brokers/ids") == ["0"]
                assert eyes.get("/brokers/topics/b/0")[0] == b"2"
    said = [record.getMessage() for record in caplog.records]
    assert [text.split(":")[0].split(" in ")[0] for text in said if "cannot be reached" in text] == [
        f"ZooKeeper {server.address}/away".split(":")[0]
    ]
    assert len([text for text in said if text.startswith("registered in ZooKeeper")]) >= 2


async def test_nodes_that_somebody_deleted_are_made_again_and_that_is_told_once(
    where: ConnectString, eyes: KazooClient, caplog: pytest.LogCaptureFixture
) -> None:
    async with registered(where, {"a": 1, "b": 2}):
        path = f"{where.chroot}/brokers/ids/0"
        session = session_of(eyes, path)
        eyes.delete(path)
        await until(lambda: session_of(eyes, path) == session)
        assert eyes.get(path)[0] == VALUE.encode()
        await until(lambda: "somebody deleted or changed" in caplog.text)
        eyes.set(f"{where.chroot}/brokers/topics/b/0", b"7")
        await until(lambda: eyes.get(f"{where.chroot}/brokers/topics/b/0")[0] == b"2")
        told = [text for text in caplog.messages if "/brokers/ids/0; it is" in text]
        assert told == [f"ZooKeeper {where}: somebody deleted or changed /brokers/ids/0; it is made again"]
        everything = eyes.transaction()  # at once: one by one, the first would be there again before the last is gone
        for name in ("/ids/0", "/ids", "/topics/a/0", "/topics/a", "/topics/b/0", "/topics/b", "/topics", ""):
            everything.delete(f"{where.chroot}/brokers{name}")
        assert set(everything.commit()) == {True}
        for name in ("ids/0", "topics/a/0", "topics/b/0"):
            await until(lambda name=name: session_of(eyes, f"{where.chroot}/brokers/{name}") == session)


async def test_a_change_is_seen_that_is_told_before_the_answer_to_the_question_for_it(
    where: ConnectString, eyes: KazooClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """kazoo hands out answers in one thread, and changes in another."""
    path = f"{where.chroot}/brokers/topics/b/0"
    watch, changed = ZooKeeperSession.watch, []

    async def answer_late(self: ZooKeeperSession, node: str, notice: Callable[[], None]) -> Node | None:
        told = asyncio.Event()

        def tell() -> None:
            notice()
            told.set()

        found = await watch(self, node, tell)
        if node == path and not changed:
            changed.append(await asyncio.to_thread(eyes.set, path, b"7"))
            await told.wait()
        return found

    monkeypatch.setattr(ZooKeeperSession, "watch", answer_late)
    async with registered(where, {"b": 2}):
        await until(lambda: eyes.get(path)[0] == b"2")
        assert changed


async def test_a_zookeeper_that_lost_its_data_is_told_everything_again(tmp_path: Path) -> None:
    with ZooKeeperServer(tmp_path) as server:
        where = read_connect_string(f"{server.address}/lost")
        async with registered(where, {"a": 1}, session=1500) as registration:
            with connect(server) as eyes:
                for number in range(50):  # it has seen more than the next one begins with
                    eyes.create(f"/other-{number}")
            registration.refresh()
            await asyncio.sleep(0.1)
            server.stop()
            await until(lambda: not registration.registered)
            shutil.rmtree(tmp_path / "version-2")
            server.start()
            await until(lambda: registration.registered)
            with connect(server, "/lost") as eyes:
                await until(lambda: children(eyes, "/brokers/ids") == ["0"])
                await until(lambda: children(eyes, "/brokers/topics/a") == ["0"])


async def test_a_chroot_that_cannot_be_one_is_told_for_what_it_is(
    shared_zookeeper: ZooKeeperServer, eyes: KazooClient, caplog: pytest.LogCaptureFixture
) -> None:
    eyes.create("/of-a-session", b"", ephemeral=True)
    registration = make(read_connect_string(f"{shared_zookeeper.address}/of-a-session/kafka"), {"a": 1})
    opening = asyncio.create_task(registration.open(0, VALUE))
    try:
        await until(lambda: "it refused a call: NoChildrenForEphemeralsError at /of-a-session/kafka: " in caplog.text)
        assert not registration.registered
        assert "cannot be reached" not in caplog.text
        eyes.delete("/of-a-session")
        await opening
        await until(lambda: registration.registered)
    finally:
        await registration.close()


async def test_a_node_that_is_changed_before_it_is_watched_is_made_again(
    where: ConnectString, eyes: KazooClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, watch, changed = f"{where.chroot}/brokers/topics/a/0", ZooKeeperSession.watch, []

    async def change_first(session: ZooKeeperSession, name: str, notice: Callable[[], None]) -> Node | None:
        if name == path and not changed:
            changed.append(await asyncio.to_thread(eyes.set, path, b"7"))
        return await watch(session, name, notice)

    monkeypatch.setattr(ZooKeeperSession, "watch", change_first)
    async with registered(where, {"a": 2}):
        await until(lambda: changed and eyes.get(path)[0] == b"2")


async def test_a_refusal_names_the_node_and_its_end_is_told(
    where: ConnectString, eyes: KazooClient, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "korvet_fast.zookeeper.registration")
    topics = {"a": 1}

    async def hear(words: str, since: int) -> None:
        """There may be other lines: on a busy machine so short a session ends, and is told of."""
        await until(lambda: any(words in text for text in caplog.messages[since:]))

    async with registered(where, topics, session=SESSION) as registration:
        for number in (1, 2):  # each time
            path, begun = f"{where.chroot}/brokers/topics/late{number}", len(caplog.messages)
            eyes.create(path, acl=READ_ACL_UNSAFE)
            topics[f"late{number}"] = 1
            registration.refresh()
            await hear(f"it refused a call: NoAuthError at {path}/0: let this broker", begun)
            mended = len(caplog.messages)
            eyes.delete(path)
            await hear("registered in ZooKeeper", mended)
            await until(lambda path=path: session_of(eyes, f"{path}/0"))
            assert eyes.get(f"{path}/0")[0] == b"1"


async def test_a_broker_starts_while_zookeeper_is_away(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    server = ZooKeeperServer(tmp_path)
    registration = make(read_connect_string(server.address), {"a": 3}, session=10_000, patience=200)
    await registration.open(5, VALUE)
    try:
        assert not registration.registered
        assert "cannot be reached" in caplog.text
        with server, connect(server) as eyes:
            await until(lambda: registration.registered)
            assert eyes.get("/brokers/topics/a/5")[0] == b"3"
    finally:
        await registration.close()


async def test_closing_while_zookeeper_does_not_answer_ends(tmp_path: Path) -> None:
    with ZooKeeperServer(tmp_path) as server:
        registration = make(read_connect_string(server.address), {})
        await registration.open(0, VALUE)
        server.pause()
        await asyncio.wait_for(registration.close(), WITHIN)
        server.resume()
