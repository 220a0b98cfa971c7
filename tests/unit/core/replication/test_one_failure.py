"""What fails for one log, or once, stops no other log, and is tried again."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from korvet_fast.core.replication.replica import Replica
from korvet_fast.core.topics.topic import Document
from korvet_fast.errors import StoreError
from korvet_fast.store.embedded.store import EmbeddedStore
from korvet_fast.store.types import NotLeader
from replicated_scene import ReplicatedScene


def fail(failures: int, work: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
    """`work`, which raises so often before it is done."""
    left = [failures]

    async def failing(*arguments: Any) -> Any:
        if left[0] > 0:
            left[0] -= 1
            raise StoreError("the disk does not answer")
        return await work(*arguments)

    return failing


async def test_a_log_that_cannot_be_read_keeps_no_other_from_being_copied(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with ReplicatedScene(tmp_path) as scene:
        broken, whole = await scene.create("broken"), await scene.create("whole")
        for log in (broken, whole):
            await scene.acquire(log, 1)
            await scene.append(log, 1)
        opened = scene.replica(broken, 1).opened

        class Unreadable:
            append = staticmethod(opened.append)
            read = staticmethod(fail(1_000_000, opened.read))

        scene.replica(broken, 1).opened = Unreadable()  # type: ignore[assignment]
        scene.append(broken, 1)
        await scene.append(whole, 1, 3)
        await scene.isr(whole, 1, 1, 2, 3)
        await scene.isr(broken, 1, 1)
    assert "broken:0 cannot be copied: the disk does not answer" in caplog.text


async def test_a_truncation_that_failed_is_done_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with ReplicatedScene(tmp_path) as scene:
        log = await scene.create(min_insync_replicas=2)
        await scene.acquire(log, 1)
        lost = await scene.diverge(log)
        monkeypatch.setattr(EmbeddedStore, "truncate", fail(2, _truncate))
        scene.cut.clear()
        await scene.isr(log, 2, 1, 2, 3)
        assert lost.exception() is not None
        for identity in scene.ids:
            assert await scene.read(log, identity) == [0, 1, 2, 3, 4]


_truncate = EmbeddedStore.truncate


async def test_a_log_that_cannot_be_truncated_keeps_no_other_from_being_copied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with ReplicatedScene(tmp_path) as scene:
        log, whole = await scene.create(min_insync_replicas=2), await scene.create("whole", (2, 1, 3))
        await scene.acquire(log, 1)
        await scene.acquire(whole, 2)
        lost = await scene.diverge(log)
        monkeypatch.setattr(EmbeddedStore, "truncate", fail(1_000_000, _truncate))
        scene.cut.clear()
        scene.append(whole, 2, 3)
        await scene.until(lambda: scene.replica(whole, 1).end == 3)
        assert scene.replica(log, 1).end == 7
        await scene.until(lost.done)
        assert lost.exception() is not None


async def test_a_topic_that_is_deleted_while_its_copies_are_made_keeps_no_other_from_being_copied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opening, opened = Replica.open, []
    async with ReplicatedScene(tmp_path) as scene:

        async def open_and_delete(replica: Replica) -> None:
            await opening(replica)
            opened.append(replica)
            for broker in scene.brokers.values():
                broker.replicas.note_change("topics/gone", None)

        monkeypatch.setattr(Replica, "open", open_and_delete)
        document = Document(b"gone".ljust(16, b"\0"), 2, {}, replicas=[[1, 2, 3], [1, 2, 3]])
        assert await scene.stores[1].save("topics/gone", document.pack(), None)
        await scene.until(lambda: opened)
        await scene.until(lambda: not any("gone:0" in broker.replicas.logs for broker in scene.brokers.values()))
        monkeypatch.setattr(Replica, "open", opening)
        log = await scene.create("stays")
        await scene.acquire(log, 1)
        await scene.append(log, 1)
        await scene.isr(log, 1, 1, 2, 3)


async def test_a_copy_that_cannot_be_removed_is_removed_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async with ReplicatedScene(tmp_path) as scene:
        log = await scene.create()
        await scene.acquire(log, 1)
        await scene.append(log, 1)
        await scene.until(lambda: all(scene.replica(log, identity).end == 1 for identity in scene.ids))
        monkeypatch.setattr(EmbeddedStore, "drop", fail(3, EmbeddedStore.drop))
        known = await scene.stores[1].load("topics/orders")
        assert await scene.stores[1].save("topics/orders", None, known)
        async with asyncio.timeout(30):
            for broker in scene.brokers.values():
                while log in broker.replicas.logs or await broker.local.scan("replica/orders"):
                    await asyncio.sleep(0.01)
    assert "topic orders cannot be copied yet: the disk does not answer" in caplog.text


async def test_a_change_of_the_isr_that_comes_late_ends_no_later_leadership(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with ReplicatedScene(tmp_path) as scene:
        log = await scene.create(min_insync_replicas=1)
        await scene.acquire(log, 1)
        registry = scene.brokers[1].replicas._registry
        load, asked, answer = registry.load, asyncio.Event(), asyncio.Event()

        async def load_late(key: str) -> bytes | None:
            if not asked.is_set():
                asked.set()
                await answer.wait()
            return await load(key)

        monkeypatch.setattr(registry, "load", load_late)
        scene.mute = {(3, log)}
        scene.append(log, 1)
        await asked.wait()  # the leader writes down that 3 is not in sync
        await scene.acquire(log, 1)
        leading = scene.replica(log, 1).progress
        answer.set()
        await scene.isr(log, 1, 1, 2)
        assert scene.replica(log, 1).progress is leading
        await scene.append(log, 1)


async def test_who_was_named_and_then_another_follows_that_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with ReplicatedScene(tmp_path, "replica.lag.timeout=60000") as scene:
        log = await scene.create(min_insync_replicas=2)
        await scene.acquire(log, 1)
        await scene.append(log, 1)
        await scene.until(lambda: not any(scene.replica(log, identity).is_new for identity in (2, 3)))
        begin_leading = Replica.begin_leading

        async def begin_late(replica: Replica, *arguments: Any) -> None:
            monkeypatch.setattr(Replica, "begin_leading", begin_leading)
            assert await scene.appoint(log, 2) == ""
            await scene.until(lambda: scene.brokers[1].replicas.find_leader(log) == 2)
            await begin_leading(replica, *arguments)

        monkeypatch.setattr(Replica, "begin_leading", begin_late)
        with pytest.raises(NotLeader, match="to be led by broker 2"):
            await scene.acquire(log, 1)
        await scene.append(log, 2, 3)
        await scene.until(lambda: scene.replica(log, 1).end == 4)
