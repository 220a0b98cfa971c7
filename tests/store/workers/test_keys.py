"""The keys of several workers: one has the registry, and when it ends another has it with all that was answered."""

import asyncio
import errno
import os
import shutil
import socket
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from unittest.mock import create_autospec

import pytest

from korvet_fast.errors import OutcomeUnknown, StoreError
from korvet_fast.store.embedded.registry import Registry
from korvet_fast.store.types import ABSENT
from korvet_fast.store.workers import keys as keys_module
from korvet_fast.store.workers.key_server import SOCKET
from korvet_fast.store.workers.keys import WorkerKeys
from korvet_fast.store.workers.locks import ByteLocks
from korvet_fast.store.workers.messages import LIMIT
from korvet_fast.store.workers.store import WorkerStore
from store.breakable import Flushes
from store.worker_process import WorkerProcess


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """A directory whose path is longer than a Unix socket's may be."""
    place = tmp_path / ("deep" * 20) / "data"
    place.mkdir(parents=True)
    assert len(os.fsencode(place)) > 107
    return place


async def test_who_asks_and_who_has_the_registry_see_the_same(directory: Path) -> None:
    with WorkerProcess(directory, 2) as other:
        assert await other.do("serves")
        store = WorkerStore(directory, 1, directory / "locks")
        await store.open()
        before = await store.version("a/")
        assert await other.do("save", "a/1", "x", None)
        assert await store.load("a/1") == b"x"
        assert (between := await store.version("a/")) != before
        assert await store.save("a/1", b"y", b"x")
        assert not await store.save("a/1", b"z", b"x")
        assert await other.do("load", "a/1") == "y"
        assert await store.version("a/") not in (before, between)
        assert await store.version("b/") == await store.version("c/")
        await store.close()


async def test_a_large_registry_is_scanned(directory: Path) -> None:
    with WorkerProcess(directory, 2):
        store = WorkerStore(directory, 1, directory / "locks")
        await store.open()
        values = {f"a/{number:03}": bytes([number]) * 100_000 for number in range(60)}
        await asyncio.gather(*(store.save(key, value, ABSENT) for key, value in values.items()))
        assert await store.scan("a/") == values
        with pytest.raises(StoreError, match="at most"):
            await store.save("a/large", bytes(70 << 20), ABSENT)
        assert await store.load("a/001") == values["a/001"]
        await store.close()


async def test_a_value_has_the_same_limit_whoever_saves_it(directory: Path) -> None:
    """Else one that the registry's own worker has saved could be read by no other."""
    one, two = WorkerStore(directory, 1, directory / "locks"), WorkerStore(directory, 2, directory / "locks")
    await one.open()
    await two.open()
    for store in (one, two):
        with pytest.raises(StoreError, match="at most"):
            await store.save("a/large", bytes(70 << 20), ABSENT)
    values = {"a/1": bytes(1_000_000), "a/2": bytes(LIMIT - 100)}
    for key, value in values.items():
        assert await one.save(key, value, ABSENT)
    assert await two.scan("a/") == values
    assert await two.load("a/2") == values["a/2"]
    await two.close()
    await one.close()


async def test_the_registry_goes_on_when_its_worker_is_killed(directory: Path) -> None:
    """No answered save is lost, none is carried out twice, and versions are new ones."""
    store = WorkerStore(directory, 1, directory / "locks")
    with WorkerProcess(directory, 2) as other:
        await store.open()
        assert await other.do("serves")
        number, unknown = 0, 0
        for killed in range(3):
            before = await store.version("n/")
            killing = asyncio.get_running_loop().call_later(0.02 * (killed + 1), other.kill)
            until = number + 300
            while number < until or other.process is not None:
                value = b"%d" % number if number else ABSENT
                try:
                    assert await store.save("n/count", b"%d" % (number + 1), value)
                except OutcomeUnknown:
                    unknown += 1
                    found = await store.load("n/count")
                    assert found in (value, b"%d" % (number + 1))
                    if found == value:
                        continue
                number += 1
            killing.cancel()
            assert await store.load("n/count") == b"%d" % number
            assert await store.version("n/") != before
            await asyncio.to_thread(other.start)
            assert await other.do("load", "n/count") == str(number)
            await give_registry(store, other)
        assert number >= 900
    await store.close()


async def give_registry(store: WorkerStore, other: WorkerProcess) -> None:
    """Have the other process have the registry, if it does not."""
    if not await other.do("serves"):
        keys: WorkerKeys = store._keys
        await keys.close()
        while not await other.do("serves"):  # it tries once a second
            await asyncio.sleep(0.01)
        store._keys = WorkerKeys(keys._directory, keys._number, keys._locks, keys._open_registry, keys._give_up)
        store._owners._keys = store._keys
        await store._keys.open()


async def test_saves_go_on_when_its_worker_closes(directory: Path) -> None:
    """In good order nobody's outcome is unknown: what was not done is done by the next worker."""
    store = WorkerStore(directory, 1, directory / "locks")
    with WorkerProcess(directory, 2) as other:
        await store.open()
        assert await other.do("serves")
        closing = None
        for number in range(400):
            if number == 50:
                closing = asyncio.create_task(other.do("close"))
            assert await store.save("n/count", b"%d" % (number + 1), b"%d" % number if number else ABSENT)
        assert closing is not None
        await closing
    assert await store.load("n/count") == b"400"
    await store.close()


async def test_questions_wait_for_a_worker_and_end_when_the_store_closes(directory: Path) -> None:
    store = WorkerStore(directory, 1, directory / "locks")
    with WorkerProcess(directory, 2) as other:
        await store.open()
        assert await other.do("serves")
        other.pause()
        asking = asyncio.create_task(store.load("a/1"))
        await asyncio.sleep(0.05)
        assert not asking.done()
        await store.close()
        with pytest.raises(StoreError):
            await asking


async def test_the_registry_goes_on_after_a_flush_that_failed(
    directory: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Whoever has it next reads it from the disk, as after a crash: what was answered is there."""
    flushes = Flushes(monkeypatch)
    store = WorkerStore(directory, 1, directory / "locks")
    await store.open()
    other = WorkerProcess(directory, 2)
    try:
        await asyncio.to_thread(other.start)
        assert await store.save("n/count", b"1", ABSENT)
        assert await other.do("load", "n/count") == "1"
        before = await store.version("n/")
        flushes.broken = True
        with pytest.raises(StoreError, match="the flush failed"):
            await store.save("n/count", b"2", b"1")
        flushes.broken = False
        async with asyncio.timeout(60):
            while (found := await load_unless_failed(store, "n/count")) is None:
                await asyncio.sleep(0.01)
        assert found in (b"1", b"2")  # not answered: either is allowed
        assert await other.do("load", "n/count") == found.decode()
        assert await other.do("save", "n/count", "3", found.decode())
        assert await store.load("n/count") == b"3"
        assert await store.version("n/") != before
        await store.close()
        assert await other.do("load", "n/count") == "3"
    finally:
        other.kill()
    assert "worker 1 gives the registry up: it is read from the disk again" in caplog.text


async def load_unless_failed(store: WorkerStore, key: str) -> bytes | None:
    try:
        return await store.load(key)
    except StoreError:
        return None


async def test_a_number_has_one_process(directory: Path) -> None:
    with WorkerProcess(directory, 1):
        store = WorkerStore(directory, 1, directory / "locks")
        with pytest.raises(StoreError, match="worker 1 is running already"):
            await store.open()
    await store.open()
    await store.close()


async def test_a_registry_that_cannot_be_opened_is_told(directory: Path) -> None:
    (directory / "@registry").mkdir()
    (directory / "@registry" / "start").write_text("nonsense")
    store = WorkerStore(directory, 1, directory / "locks")
    with pytest.raises(StoreError, match="should hold one number"):
        await store.open()


async def test_a_registry_that_cannot_be_opened_is_tried_ever_more_rarely(
    directory: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """It may be for hours, and other workers try as well. It is told once, and again when it happens again."""
    loop = asyncio.get_running_loop()
    times: list[float] = []
    healed = asyncio.Event()

    @asynccontextmanager
    async def fail() -> AsyncIterator[Registry]:
        times.append(loop.time())
        if not healed.is_set() or len(times) == 7:
            raise StoreError("no disk")
        registry = create_autospec(Registry, instance=True)
        registry.broken = asyncio.Event()
        if len(times) == 6:
            registry.broken.set()
        yield registry

    async def give_up(_: str) -> None:
        raise AssertionError

    locks = ByteLocks(directory / "locks")
    keys = WorkerKeys(directory / "@workers", 1, locks, fail, give_up)
    while len(times) < 5:
        await asyncio.sleep(0.01)
    healed.set()
    while len(times) < 8:
        await asyncio.sleep(0.01)
    await keys.open()
    await keys.close()
    locks.close()
    assert times[4] - times[3] >= 0.15
    assert caplog.messages.count("the registry: no disk") == 2


async def test_an_error_of_ours_leaves_no_worker_without_keys(
    directory: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """It is told with its traceback, and the registry tried again as after any other error."""
    attempts: list[None] = []

    @asynccontextmanager
    async def open_registry() -> AsyncIterator[Registry]:
        attempts.append(None)
        registry = create_autospec(Registry, instance=True)
        registry.broken = asyncio.Event()
        if len(attempts) == 1:
            raise ZeroDivisionError
        yield registry

    async def give_up(_: str) -> None:
        raise AssertionError

    locks = ByteLocks(directory / "locks")
    keys = WorkerKeys(directory / "@workers", 1, locks, open_registry, give_up)
    async with asyncio.timeout(60):
        while len(attempts) < 2:
            await asyncio.sleep(0.01)
    await keys.close()
    locks.close()
    assert caplog.messages[0] == "the registry: ZeroDivisionError()"
    assert caplog.records[0].exc_info is not None


@pytest.mark.parametrize(
    ("listens", "why"),
    [(False, "@workers/registry: No such file or directory"), (True, "accepts connections, and answers nothing")],
)
async def test_why_the_registry_cannot_be_asked_is_told(
    directory: Path, monkeypatch: pytest.MonkeyPatch, listens: bool, why: str
) -> None:
    """It is connected to anew where it does not answer the first question."""
    monkeypatch.setattr(keys_module, "PATIENCE", 1.0)
    monkeypatch.setattr(keys_module, "_GREETING", 0.2)
    with WorkerProcess(directory, 2) as other:
        assert await other.do("serves")
        other.pause()
        if not listens:
            (directory / "@workers" / SOCKET).unlink()
        store = WorkerStore(directory, 1, directory / "locks")
        with pytest.raises(StoreError, match=f"the registry cannot be asked: the worker that has it .*{why}"):
            await store.open()


def test_a_socket_that_was_deleted_is_made_anew(directory: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Workers that are connected notice nothing; one that starts reaches the registry."""
    with WorkerProcess(directory, 1), WorkerProcess(directory, 2) as connected:
        shutil.rmtree(directory / "@workers", ignore_errors=True)  # it may be made anew meanwhile
        with WorkerProcess(directory, 3) as fresh:
            assert connected.do_now("save", "key", "value", None)
            assert fresh.do_now("load", "key") == "value"
            assert not fresh.do_now("serves")
    assert capfd.readouterr().err.splitlines() == [
        f"{directory}/@workers/{SOCKET} was deleted and is made anew: delete nothing in the data directory while a "
        "broker runs"
    ]


def test_a_socket_that_cannot_be_made_anew_stops_nobody(directory: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """It is tried again each second, and told once; the workers that are connected go on meanwhile."""
    place, told = directory / "@workers", ""
    with WorkerProcess(directory, 1), WorkerProcess(directory, 2) as connected:
        shutil.rmtree(place)
        place.write_text("in the way")
        while "File exists" not in told:
            told += capfd.readouterr().err
            time.sleep(0.1)
        assert connected.do_now("save", "key", "value", None)
        place.unlink()
        with WorkerProcess(directory, 3) as fresh:
            assert fresh.do_now("load", "key") == "value"
            assert not connected.do_now("serves")
    told += capfd.readouterr().err
    assert told.count("File exists") == 1
    assert told.count("was deleted and is made anew") == 1


async def test_a_disk_that_stands_still_as_the_registry_is_read_is_told(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody looks for another worker then: this one has the registry."""
    monkeypatch.setattr(keys_module, "PATIENCE", 0.2)

    @asynccontextmanager
    async def open_registry() -> AsyncIterator[Registry]:
        await asyncio.Event().wait()
        yield create_autospec(Registry)

    async def give_up(_: str) -> None:
        raise AssertionError

    locks = ByteLocks(directory / "locks")
    keys = WorkerKeys(directory / "@workers", 1, locks, open_registry, give_up)
    with pytest.raises(StoreError, match="the registry cannot be asked: this worker has not read it from the disk yet"):
        await keys.open()
    keys.abort()
    locks.close()


async def test_a_file_system_without_sockets_is_told(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.EOPNOTSUPP, os.strerror(errno.EOPNOTSUPP))

    monkeypatch.setattr(socket.socket, "bind", refuse)
    why = "cannot be made: Operation not supported; a file system without such sockets is for --workers 1"
    store = WorkerStore(directory, 1, directory / "locks")
    with pytest.raises(StoreError, match=f"@workers/registry, the Unix socket by which workers talk, {why}"):
        await store.open()
