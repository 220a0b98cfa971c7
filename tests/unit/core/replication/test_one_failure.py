"""What fails for one log, or once, stops no other log, and is tried again."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from korvet_fast.core.replication import copying
from korvet_fast.core.replication.peers import FetchPosition, split_qualified
from korvet_fast.core.replication.replica import Replica
from korvet_fast.core.replication.replica_fetcher import ReplicaFetcher
from korvet_fast.core.topics.topic import Document
from korvet_fast.errors import StoreError
from korvet_fast.store.embedded.store import EmbeddedStore
from korvet_fast.store.interface import OpenedLog
from korvet_fast.store.types import Appending, NotLeader, RecordBatch
from replicated_scene import ReplicatedScene


def fail(failures: int, work: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
    """`work`, which raises so often before it is done."""
    left = [failures]

    async def failing(*arguments: Any, **options: Any) -> Any:
        if left[0] > 0:
            left[0] -= 1
            raise StoreError("the disk does not answer")
        return await work(*arguments, **options)

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


async def test_a_copy_that_cannot_be_written_goes_on_when_it_can(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    async with ReplicatedScene(tmp_path) as scene:
        log, whole = await scene.create(), await scene.create("whole")
        for each in (log, whole):
            await scene.acquire(each, 1)
            await scene.append(each, 1)
        copy, tried = scene.replica(log, 3), 0
        opened = copy.opened

        def append(batches: Sequence[RecordBatch], *more: Any) -> Appending:
            nonlocal tried
            if not batches:
                return opened.append(batches, *more)
            tried += 1
            raise StoreError("no space left")

        copy.opened = OpenedLog(append, opened.read)
        scene.append(log, 1)
        await scene.until(lambda: tried)
        for expected in range(2, 6):
            await scene.append(whole, 1)
            await scene.until(lambda expected=expected: scene.replica(whole, 3).end == expected)
        await scene.isr(log, 1, 1, 2)
        await scene.until(lambda: tried > 1)
        copy.opened = opened
        await scene.isr(log, 1, 1, 2, 3)
        assert await scene.read(log, 3) == [0, 1]
    told = [record.getMessage() for record in caplog.records]
    assert told.count("orders:0 is not copied, and tried again: no space left") == 1
    assert told.count("orders:0 is copied again") == 1


async def test_a_copy_whose_flush_failed_is_copied_no_more(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with ReplicatedScene(tmp_path) as scene:
        log, whole = await scene.create(min_insync_replicas=2), await scene.create("whole")
        for each in (log, whole):
            await scene.acquire(each, 1)
            await scene.append(each, 1)
        await scene.isr(log, 3, 1, 2, 3)
        asked = count_fetches(scene, 3)
        with break_flushes(scene, 3, log):
            await scene.append(log, 1)  # acknowledged once broker 3 does not count
        await scene.isr(log, 1, 1, 2)
        asked.clear()
        for expected in range(2, 6):
            await scene.append(whole, 1)
            await scene.until(lambda expected=expected: scene.replica(whole, 3).end == expected)
        assert asked[whole]
        assert not asked[log]
        with pytest.raises(StoreError, match="the flush failed"):
            await scene.stop(3)
        assert sum("the flush failed" in record.getMessage() for record in caplog.records) == 1


async def test_a_leader_whose_flush_failed_confirms_nothing_as_a_follower(tmp_path: Path) -> None:
    """Its records are at the others, but not on its own disk."""
    async with ReplicatedScene(tmp_path) as scene:
        log = await scene.create(min_insync_replicas=2)
        await scene.acquire(log, 1)
        await scene.append(log, 1)
        asked = count_fetches(scene, 1)
        with break_flushes(scene, 1, log):
            lost = scene.append(log, 1)
            await scene.until(lost.done)
        assert lost.exception() is not None
        await scene.until(lambda: scene.replica(log, 2).end == 2)
        assert await scene.appoint(log, 2) == ""
        await scene.isr(log, 2, 2, 3)
        assert not asked[log]
        with pytest.raises(StoreError, match="the flush failed"):
            await scene.stop(1)


async def test_an_unforeseen_error_of_one_log_is_logged_and_the_log_copied_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async with ReplicatedScene(tmp_path) as scene:
        log, whole = await scene.create(), await scene.create("whole")
        await scene.acquire(log, 1)
        await scene.acquire(whole, 1)
        copy, broken, raised = copying.copy, scene.replica(log, 3), list[bool]()

        async def copy_badly(replica: Replica, *arguments: Any) -> bool:
            if replica is broken and not raised:
                raised.append(True)
                raise ZeroDivisionError("by nothing")
            return await copy(replica, *arguments)

        monkeypatch.setattr(copying, "copy", copy_badly)
        scene.append(log, 1)
        await scene.until(lambda: raised)
        await scene.append(whole, 1)
        for each in (log, whole):
            await scene.until(lambda each=each: scene.replica(each, 3).end == 1)
    assert "orders:0 is not copied, and tried again: ZeroDivisionError('by nothing')" in caplog.text
    assert "Traceback" in caplog.text


async def test_an_unforeseen_error_ends_no_copying(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async with ReplicatedScene(tmp_path) as scene:
        log = await scene.create()
        await scene.acquire(log, 1)
        fetch, raised = ReplicaFetcher.fetch, Counter[ReplicaFetcher]()

        async def fetch_badly(fetcher: ReplicaFetcher, *arguments: Any) -> bool:
            raised[fetcher] += 1
            if raised[fetcher] == 1:
                raise ZeroDivisionError("by nothing")
            return await fetch(fetcher, *arguments)

        monkeypatch.setattr(ReplicaFetcher, "fetch", fetch_badly)
        scene.append(log, 1)
        await scene.until(lambda: all(scene.replica(log, identity).end == 1 for identity in scene.ids))
        await scene.isr(log, 1, 1, 2, 3)
    assert "background work failed, and is done again: by nothing" in caplog.text
    assert "Traceback" in caplog.text


def count_fetches(scene: ReplicatedScene, identity: int) -> Counter[str]:
    """How often a broker has fetched each log from now on."""
    asked: Counter[str] = Counter()
    peers = scene.brokers[identity]._peers
    fetch = peers.fetch

    async def count(broker: int, positions: Sequence[FetchPosition], *more: Any, **named: Any) -> Any:
        asked.update(split_qualified(position.log)[0] for position in positions)
        return await fetch(broker, positions, *more, **named)

    peers.fetch = count  # type: ignore[method-assign]
    return asked


@contextmanager
def break_flushes(scene: ReplicatedScene, identity: int, log: str) -> Iterator[None]:
    """One flush of a broker's log fails inside the context."""
    store = scene.brokers[identity].local
    assert isinstance(store, EmbeddedStore)
    flusher, broken = store._commit._flusher, store._logs[log]
    tickets = set[int]()

    class Broken:
        fileno, close = flusher.fileno, flusher.close

        def flush(self, key: int, ticket: int, *more: Any) -> None:
            if key == id(broken):
                tickets.add(ticket)
            flusher.flush(key, ticket, *more)

        def take(self) -> list[tuple[int, str | None]]:
            return [(ticket, "the disk is gone" if ticket in tickets else why) for ticket, why in flusher.take()]

    store._commit._flusher = Broken()  # type: ignore[assignment]
    yield
    store._commit._flusher = flusher


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


async def test_the_in_sync_replicas_change_after_an_unforeseen_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Until the change is made the leader waits for the former replicas too, and begins no other change."""
    async with ReplicatedScene(tmp_path) as scene:
        log = await scene.create(min_insync_replicas=2)
        await scene.acquire(log, 1)
        await scene.append(log, 1)
        registry, raised = scene.brokers[1].registry, False
        load = registry.load

        async def load_badly(key: str) -> bytes | None:
            nonlocal raised
            if not raised:
                raised = True
                raise ZeroDivisionError("by nothing")
            return await load(key)

        monkeypatch.setattr(registry, "load", load_badly)
        scene.mute.add((3, log))
        appended = scene.append(log, 1)
        await scene.isr(log, 1, 1, 2)
        await appended
        assert raised
