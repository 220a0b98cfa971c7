import asyncio
import gc
import sys
import weakref
from pathlib import Path

import psutil
import pytest

from broker_process import BrokerProcess
from korvet_fast.net import memory as module
from korvet_fast.net.memory import Memory

pytestmark = pytest.mark.usefixtures("unfrozen")


def test_no_full_collection_falls_into_a_request() -> None:
    full: list[str] = []

    def note(phase: str, info: dict[str, int]) -> None:
        if info["generation"] == 2 and phase == "start":
            full.append(phase)

    async def scenario() -> None:
        memory = Memory()
        memory.start()
        gc.callbacks.append(note)
        try:
            kept = [[[] for _ in range(10)] for _ in range(100_000)]  # Python would look at all of it several times
            assert len(kept) == 100_000
        finally:
            gc.callbacks.remove(note)
            memory.stop()

    before = gc.get_threshold(), gc.get_freeze_count()
    asyncio.run(scenario())
    assert not full
    assert (gc.get_threshold(), gc.get_freeze_count()) == before


def test_young_objects_do_not_pile_up_where_as_many_go_as_come(monkeypatch: pytest.MonkeyPatch) -> None:
    """The interpreter counts those that come less those that go: it would visit all of them at once."""
    monkeypatch.setattr(module, "YOUNG_COLLECTION", 0.001)
    young, generations = [0], set[int]()

    async def scenario() -> None:
        kept: list[list[int]] = [[] for _ in range(100_000)]
        memory = Memory()
        memory.start()
        gc.callbacks.append(lambda _, info: generations.add(info["generation"]))
        try:
            for start in range(0, 100_000, 1000):
                for index in range(start, start + 1000):
                    kept[index] = []
                young.append(len(gc.get_objects(0)))
                await asyncio.sleep(0.002)
        finally:
            gc.callbacks.pop()
            memory.stop()

    asyncio.run(scenario())
    assert max(young) < 50_000
    assert generations == {0}


def test_a_busy_loop_keeps_freed_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "KEPT", -1)
    monkeypatch.setattr(module, "GIVE_BACK", 3600.0)
    used, given = [0.0], list[object]()
    monkeypatch.setattr(module, "thread_time", lambda: used[0])

    async def scenario() -> None:
        memory = Memory()
        memory.start()
        monkeypatch.setattr(memory, "_trim", given.append)
        try:
            used[0] = 1_000_000.0  # all of the time, however fast this machine is
            memory._give_back()
            await asyncio.sleep(0.01)
            busy = len(given)
            memory._give_back()
            async with asyncio.timeout(60):
                while not given:
                    await asyncio.sleep(0.01)
            assert busy == 0
        finally:
            memory.stop()

    asyncio.run(scenario())


def test_full_collections_come_in_their_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "FULL_COLLECTION", 0.01)
    collected = asyncio.Event()

    async def scenario() -> None:
        memory = Memory()
        memory.start()
        gc.callbacks.append(lambda _, info: collected.set() if info["generation"] == 2 else None)
        try:
            async with asyncio.timeout(120):
                await collected.wait()
        finally:
            gc.callbacks.pop()
            memory.stop()

    asyncio.run(scenario())


def test_emptying_the_free_lists_exempts_objects_from_collections_until_the_next_full_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "GIVE_BACK", 0.001)
    monkeypatch.setattr(module, "KEPT", -1)

    class Circle:
        """Refers to itself."""

        def __init__(self) -> None:
            self.me = self

    def is_exempt(looked_for: object) -> bool:
        return not any(each is looked_for for each in gc.get_objects())  # it gives those of the generations only

    async def scenario() -> None:
        memory = Memory()
        memory.start()
        gc.disable()  # a collection of the young ones would be first
        kept, circle = Circle(), weakref.ref(Circle())
        try:
            assert not is_exempt(kept)
            async with asyncio.timeout(120):
                while not is_exempt(kept):
                    await asyncio.sleep(0.001)
            assert circle() is not None
            memory._collect()
            assert circle() is None
            assert is_exempt(kept)
        finally:
            gc.enable()
            memory.stop()

    asyncio.run(scenario())


def test_memory_goes_back_after_a_flood(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path / "data", "queued.max.request.bytes=400000000") as broker:
        process = psutil.Process(broker.pid)
        before = process.memory_info().rss

        async def flood() -> None:
            sides = [await asyncio.open_connection("127.0.0.1", broker.port) for _ in range(300)]
            for _, writer in sides:  # the first 900 KB of a request of 1 MB
                writer.write((1_000_000).to_bytes(4, "big") + bytes(2) + b"\0\3" + bytes(900_000))
            async with asyncio.timeout(120):
                while process.memory_info().rss < before + (200 << 20):
                    await asyncio.sleep(0.05)
            for _, writer in sides[::-1]:
                writer.close()
            async with asyncio.timeout(120):
                while process.memory_info().rss > before + (24 << 20):
                    await asyncio.sleep(0.1)

        asyncio.run(flood())


def test_names_that_were_looked_up_once_are_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each would keep a MiB of small objects after a flood."""
    monkeypatch.setattr(module, "GIVE_BACK", 0.001)

    async def scenario() -> None:
        memory = Memory()
        memory.start()
        try:
            name = "".join(("made by C code ", "for one call"))
            alone = sys.getrefcount(name)
            assert not hasattr(memory, name)
            assert sys.getrefcount(name) > alone  # the interpreter's cache has it
            async with asyncio.timeout(120):
                while sys.getrefcount(name) > alone:
                    await asyncio.sleep(0.001)
        finally:
            memory.stop()

    asyncio.run(scenario())
