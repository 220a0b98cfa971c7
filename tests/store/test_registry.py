"""The keys of a store with large values: saves are never long in the way."""

import asyncio
import time
from typing import Any

import pytest

from korvet_fast.errors import StoreError
from store.engines import EmbeddedEngine

KEYS = 64
LARGE = 1_000_000  # bytes of a value
LONGEST = 0.05  # seconds of the processor's time in one turn of the loop; a value of that size takes one or two ms


async def watch_turns(done: asyncio.Event) -> float:
    """The longest turn of the loop until `done`, in seconds of this thread's time, so that others do not count."""
    longest = 0.0
    before = time.thread_time()
    while not done.is_set():
        await asyncio.sleep(0)
        now = time.thread_time()
        longest, before = max(longest, now - before), now
    return longest


async def test_finding_2_14_compaction_of_large_values_does_not_stop_the_loop(embedded: EmbeddedEngine) -> None:
    store = embedded.make()
    await store.open()
    done = asyncio.Event()
    watching = asyncio.create_task(watch_turns(done))
    large: dict[str, bytes | None] = {f"state/{number}": None for number in range(KEYS)}
    small: dict[str, bytes | None] = {f"group/{number}": None for number in range(20)}
    for turn in range(3):
        for key in large:
            value = bytes([turn]) * LARGE
            assert await store.save(key, value, large[key])
            large[key] = value
            value = f"{turn} {key}".encode()
            assert all(await asyncio.gather(*(store.save(other, value, small[other]) for other in small)))
            small = dict.fromkeys(small, value)
    done.set()
    longest = await watching
    assert longest < LONGEST
    size = sum(path.stat().st_size for path in (embedded.directory / "@registry").glob("*.log"))
    assert size < 2.5 * KEYS * LARGE
    embedded.crash(store)
    store = embedded.make()
    await store.open()
    assert await store.scan("state/") == large
    assert await store.scan("group/") == small
    await store.close()


async def test_finding_2_14_small_values_do_not_have_large_ones_written_again(embedded: EmbeddedEngine) -> None:
    store = embedded.make()
    await store.open()
    for number in range(16):
        assert await store.save(f"state/{number}", bytes(LARGE), None)
    files = set((embedded.directory / "@registry").glob("*.log"))
    value = None
    for number in range(1200):
        assert await store.save("group/one", b"%d" % number, value)
        value = b"%d" % number
    assert set((embedded.directory / "@registry").glob("*.log")) == files
    await store.close()


class LookedAt(str):
    """A key that counts how often anybody looked at what it and its like begin with."""

    times = 0

    def startswith(self, *arguments: Any) -> bool:
        LookedAt.times += 1
        return super().startswith(*arguments)


async def test_a_scan_looks_at_the_keys_of_its_area_only(embedded: EmbeddedEngine) -> None:
    """Each worker asks for the brokers several times a second: that must not take longer with a million groups."""
    store = embedded.make()
    await store.open()
    for number in range(3):
        assert await store.save(LookedAt(f"groups/{number}"), b"a group", None)
        assert await store.save(f"brokers/{number}", b"a broker", None)
    assert await store.save(LookedAt("alone"), b"no area", None)
    assert await store.scan("brokers/") == {f"brokers/{number}": b"a broker" for number in range(3)}
    assert await store.scan("brokers/1") == {"brokers/1": b"a broker"}
    assert await store.scan("nothing/") == {}
    assert LookedAt.times == 0
    assert list(await store.scan("groups/")) == ["groups/0", "groups/1", "groups/2"]
    await store.close()


@pytest.mark.parametrize("place", [0, 0.5])
async def test_damage_that_no_crash_leaves_is_told_with_what_to_do(embedded: EmbeddedEngine, place: float) -> None:
    """At the first byte, and in a batch: the store cannot be opened, and what the error says to do lets it be."""
    store = embedded.make()
    await store.open()
    for number in range(10):
        assert await store.save(f"topics/{number}", b"a topic", None)
    await store.close()
    registry = embedded.directory / "@registry"
    (segment,) = registry.glob("*.log")
    whole = segment.read_bytes()
    position = int(len(whole) * place)
    segment.write_bytes(whole[:position] + bytes(40) + whole[position + 40 :])
    with pytest.raises(StoreError) as failure:
        await embedded.make().open()
    assert f"copy {registry} back" in failure.value.detail
    assert failure.value.detail.endswith(f"delete {embedded.directory}/checkpoint and {registry}/*.index")
    for file in (embedded.directory / "checkpoint", *registry.glob("*.index")):
        file.unlink(missing_ok=True)
    store = embedded.make()
    await store.open()
    assert len(await store.scan("topics/")) == int(10 * place)
    await store.close()
