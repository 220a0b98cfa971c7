"""Documents that brokers have in common: read when they have changed, and never of two histories at once."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from korvet_fast.core.generation import StoreGeneration
from korvet_fast.core.registry_reader import RegistryReader
from shared_store import Server, SharedStore

Scenario = Callable[[SharedStore, StoreGeneration, RegistryReader], Awaitable[None]]


def scene(scenario: Scenario) -> None:
    async def run() -> None:
        store, generation = SharedStore(Server()), StoreGeneration()
        await store.open()
        await scenario(store, generation, RegistryReader(store, generation, "things/"))

    asyncio.run(run())


def test_what_has_not_changed_is_not_read_again() -> None:
    async def scenario(store: SharedStore, generation: StoreGeneration, reader: RegistryReader) -> None:
        await store.save("things/a", b"1", None)
        await store.save("others/a", b"1", None)
        reading = await reader.read()
        assert reading is not None
        assert reading.documents == {"things/a": b"1"}
        again = await reader.read()
        assert again == reading, "it was read, and not taken over"
        reader.mark_seen(reading)
        assert await reader.read() is None
        await store.save("things/b", b"2", None)
        changed = await reader.read()
        assert changed is not None
        assert changed.documents == {"things/a": b"1", "things/b": b"2"}
        reader.mark_seen(changed)
        reader.forget()
        assert await reader.read() == changed

    scene(scenario)


def test_another_history_is_read_and_told() -> None:
    async def scenario(store: SharedStore, generation: StoreGeneration, reader: RegistryReader) -> None:
        reading = await reader.read()
        assert reading is not None
        reader.mark_seen(reading)
        generation.number += 1
        changed = await reader.read()
        assert changed is not None
        assert changed.generation != reader.history
        reader.mark_seen(changed)
        assert (reader.history, await reader.read()) == (1, None)

    scene(scenario)


def test_a_reading_in_which_the_history_breaks_is_done_again(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(store: SharedStore, generation: StoreGeneration, reader: RegistryReader) -> None:
        await store.save("things/a", b"1", None)
        scan, asked = store.scan, 0

        async def scan_and_break(prefix: str) -> dict[str, bytes]:
            nonlocal asked
            asked += 1
            found = await scan(prefix)
            if asked == 1:
                generation.number += 1
                await store.save("things/a", None, b"1")
            return found

        monkeypatch.setattr(store, "scan", scan_and_break)
        reading = await reader.read()
        assert reading is not None
        assert (asked, reading.generation, reading.documents) == (2, 1, {})

    scene(scenario)
