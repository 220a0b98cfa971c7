"""The broker as a whole: who it is, producer ids, starting and stopping."""

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from batches import make_batch
from core_world import StillClock, copy_as_crashed, put, read_all, run_broker, settle
from korvet_fast.config import read_settings
from korvet_fast.core import broker as broker_module
from korvet_fast.core.audit import AuditEntry
from korvet_fast.core.broker import Broker
from korvet_fast.core.fetch.delayed_fetch import DelayedFetch
from korvet_fast.errors import Errors, KorvetError, StoreError
from korvet_fast.store.embedded.store import EmbeddedStore
from shared_store import Server, SharedStore


def test_the_cluster_id_stays(tmp_path: Path) -> None:
    async def run() -> None:
        names = []
        for _ in range(2):
            async with run_broker(tmp_path, "node.id=5") as world:
                names.append(world.broker.cluster_id)
                assert world.broker.node_id == 5
        assert names[0] == names[1] != ""

    asyncio.run(run())


def test_producer_ids_are_never_given_out_twice(tmp_path: Path) -> None:
    async def run() -> None:
        given: list[int] = []
        async with run_broker(tmp_path / "data") as world:
            answers = await asyncio.gather(*[world.broker.new_producer() for _ in range(1500)])
            assert {epoch for _, epoch in answers} == {0}
            given += [identity for identity, _ in answers]
            copy_as_crashed(tmp_path / "data", tmp_path / "image")
        async with run_broker(tmp_path / "image") as world:
            given += [(await world.broker.new_producer())[0] for _ in range(10)]
        assert len(set(given)) == len(given)

    asyncio.run(run())


def test_acls_hold_for_a_while_without_the_store_and_nobody_is_let_in_from_then_on(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(broker_module, "_TAKE_OVER_INTERVAL", 0.01)
    monkeypatch.setattr(broker_module, "_ACL_PATIENCE", 0.1)

    async def run() -> None:
        server = Server()
        settings = read_settings(["authorizer=acl", "broker.session.timeout.ms=100", "broker.heartbeat.interval.ms=50"])
        broker = Broker(SharedStore(server), settings, StillClock())
        await broker.open()
        authorizer = broker.authorizer
        assert authorizer is not None
        for server.down in (False, True, False):
            while authorizer.is_ready is server.down:
                await asyncio.sleep(0.01)
        await broker.close()

    asyncio.run(run())
    assert caplog.text.count("the store does not tell the ACLs, so nobody but super.users may do anything") == 1


def test_draining_ends_long_polls_now_and_later(tmp_path: Path) -> None:
    async def run() -> None:
        async with run_broker(tmp_path) as world:
            partition = (await world.broker.topics.create("t", 1, {})).partitions[0]
            with DelayedFetch([(partition.log, 0)], 1) as watch:
                waiting = asyncio.create_task(watch.wait(60))
                await asyncio.sleep(0)
                world.broker.drain()
                assert await waiting
            with DelayedFetch([(partition.log, 0)], 1) as watch:
                assert await watch.wait(60)

    asyncio.run(run())


def test_a_second_broker_on_the_same_directory_is_refused_and_the_first_goes_on(tmp_path: Path) -> None:
    async def run() -> None:
        async with run_broker(tmp_path) as world:
            partition = (await world.broker.topics.create("t", 1, {})).partitions[0]
            with pytest.raises(StoreError):
                await Broker(EmbeddedStore(tmp_path), read_settings()).open()
            assert await settle(put(partition, make_batch(), acks=-1)) == 0

    asyncio.run(run())


def make_store_without_topics(place: Path, monkeypatch: pytest.MonkeyPatch) -> EmbeddedStore:
    """A store that opens, and then cannot tell its topics."""

    async def fail(prefix: str) -> dict[str, bytes]:
        raise StoreError("the disk is gone")

    store = EmbeddedStore(place)
    monkeypatch.setattr(store, "scan", fail)
    return store


def test_a_broker_that_cannot_start_lets_go_of_its_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def run() -> None:
        with pytest.raises(StoreError, match="gone"):
            await Broker(make_store_without_topics(tmp_path, monkeypatch), read_settings()).open()
        store = EmbeddedStore(tmp_path)
        await store.open()
        await store.close()

    asyncio.run(run())


def test_a_broker_that_cannot_start_ends_its_audit_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = read_settings([f"audit.log.file={tmp_path / 'audit.log'}"])
    before = set(threading.enumerate())

    async def run() -> None:
        async with run_broker(tmp_path / "data"):
            with pytest.raises(StoreError):
                await Broker(EmbeddedStore(tmp_path / "data"), settings).open()
        with pytest.raises(StoreError, match="gone"):
            await Broker(make_store_without_topics(tmp_path / "data", monkeypatch), settings).open()
        Broker(EmbeddedStore(tmp_path / "data"), settings)  # and one that is never opened, as its port is taken

    asyncio.run(run())
    assert [thread for thread in threading.enumerate() if thread.name == "audit" and thread not in before] == []
    opened = set[Path]()
    for descriptor in Path("/proc/self/fd").iterdir():
        with suppress(FileNotFoundError):  # another thread closes files meanwhile
            opened.add(descriptor.readlink())
    assert tmp_path / "audit.log" not in opened


def test_the_audit_log_ends_though_the_store_cannot_be_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def run() -> None:
        store = EmbeddedStore(tmp_path / "data")
        broker = Broker(store, read_settings([f"audit.log.file={tmp_path / 'audit.log'}"]))
        await broker.open()
        assert broker.audit is not None
        close = store.close

        async def fail() -> None:
            await close()
            raise StoreError("the disk failed at the last write")

        monkeypatch.setattr(store, "close", fail)
        with pytest.raises(StoreError, match="the last write"):
            await broker.close()
        broker.audit.put(AuditEntry("User:ann", "127.0.0.1", "", "Produce", False))
        assert broker.audit.dropped == 1, "it takes no more: what came before is in the file"

    asyncio.run(run())


def test_silent_producers_are_forgotten(tmp_path: Path) -> None:
    async def run() -> None:
        async with run_broker(tmp_path) as world:
            partition = (await world.broker.topics.create("t", 1, {})).partitions[0]
            await settle(put(partition, make_batch(producer=(1, 0, 0)), acks=-1))
            world.clock.seconds += 100
            await world.broker.apply_retention(world.clock.seconds - 50)
            assert await settle(put(partition, make_batch(producer=(1, 0, 9)), acks=-1)) == 1

    asyncio.run(run())


def test_retention_that_fails_everywhere_is_told_once_in_a_while(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def run() -> None:
        async with run_broker(tmp_path) as world:
            partitions = (await world.broker.topics.create("t", 30, {"retention.bytes": "0"})).partitions
            for partition in partitions:
                put(partition, make_batch())
            world.store.refuse_cut = StoreError("no room")
            await world.broker.apply_retention(0.0)
            assert caplog.text.count("t:0: retention failed") == caplog.text.count("retention failed") == 1
            world.clock.seconds += 11
            await world.broker.apply_retention(0.0)
            assert "29 more like it" in caplog.text

    asyncio.run(run())


@pytest.mark.parametrize("error", [KorvetError(Errors.NOT_LEADER_OR_FOLLOWER), RuntimeError("unforeseen")])
def test_retention_that_failed_once_is_done_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, error: Exception
) -> None:
    async def run() -> None:
        async with run_broker(tmp_path, "log.retention.check.interval.ms=1") as world:
            log = (await world.broker.topics.create("t", 1, {})).partitions[0].log
            calls = 0

            async def fail() -> None:
                nonlocal calls
                calls += 1
                raise error

            monkeypatch.setattr(type(log), "apply_retention", staticmethod(fail))
            async with asyncio.timeout(60):
                while calls < 3:
                    await asyncio.sleep(0.001)
            assert ("is done again: unforeseen" in caplog.text) is isinstance(error, RuntimeError)
            assert "retention failed" not in caplog.text

    asyncio.run(run())


def test_retention_of_many_partitions_lets_others_have_their_turn(tmp_path: Path) -> None:
    """Nothing of it waits for the disk here, so it would go through all partitions of the topic in one step."""

    async def run() -> None:
        async with run_broker(tmp_path) as world:
            await world.broker.topics.create("t", 20_000, {})
            turns, cleaning = 0, asyncio.create_task(world.broker.apply_retention(0.0))
            while not cleaning.done():
                await asyncio.sleep(0)
                turns += 1
            assert turns > 4

    asyncio.run(run())


def test_cleaning_runs_by_itself(tmp_path: Path) -> None:
    async def run() -> None:
        flags = (
            "log.retention.check.interval.ms=1",
            "durability=written",
            "log.retention.bytes=2000",
            "log.segment.bytes=1024",
        )
        async with run_broker(tmp_path, *flags) as world:
            partition = (await world.broker.topics.create("t", 1, {})).partitions[0]
            for _ in range(10):
                put(partition, make_batch([b"x" * 500]))
            while partition.log.start == 0:
                await asyncio.sleep(0.001)

    asyncio.run(run())


def test_ten_thousand_partitions_open_again(tmp_path: Path) -> None:
    async def run() -> None:
        async with run_broker(tmp_path, "durability=written") as world:
            topic = await world.broker.topics.create("t", 10_000, {})
            for partition in topic.partitions[::100]:
                put(partition, make_batch(producer=(1, 0, 0)))
        async with run_broker(tmp_path, "durability=written") as world:
            assert world.store.reads == 0
            topic = next(iter(world.broker.topics))
            assert sum(partition.log.end for partition in topic.partitions) == 100
            assert put(topic.partitions[0], make_batch(producer=(1, 0, 0))).base_offset == 0

    asyncio.run(run())


def test_logs_that_nobody_uses_are_closed_by_themselves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While topics come and go, are produced to, and retention looks at them."""
    monkeypatch.setattr("korvet_fast.core.broker._IDLE_INTERVAL", 0.001)
    flags = ("log.retention.check.interval.ms=1", "durability=written", "log.retention.bytes=2000")

    async def run() -> None:
        async with run_broker(tmp_path, *flags, "log.segment.bytes=1024") as world:
            kept = (await world.broker.topics.create("kept", 3, {})).partitions
            for number in range(30):
                topic = await world.broker.topics.create(f"t{number}", 3, {})
                for partition in (*topic.partitions, *kept):
                    put(partition, make_batch([b"%d" % number, b"x" * 500]))
                    await asyncio.sleep(0.001)
                if number % 2:
                    await world.broker.topics.delete(topic)
            logs = world.store.store._logs
            while not all(log.is_closed for log in logs.values()):
                await asyncio.sleep(0.001)
            assert len(logs) == 3 * (1 + 15)
            for partition in kept:
                assert (await read_all(partition, partition.log.start))[-2:] == [b"29", b"x" * 500]

    asyncio.run(run())


def test_a_store_that_cannot_close_logs_is_asked_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("korvet_fast.core.broker._IDLE_INTERVAL", 0.001)

    async def run() -> None:
        asked = asyncio.Queue[None]()

        async def refuse(wanted: Callable[[str], bool]) -> None:
            asked.put_nowait(None)
            raise StoreError("not now")

        async with run_broker(tmp_path) as world:
            monkeypatch.setattr(world.store.store, "close_idle", refuse)
            for _ in range(3):
                await asked.get()

    asyncio.run(run())
