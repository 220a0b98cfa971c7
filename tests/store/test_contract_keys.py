"""Keys and values, as `store.interface` describes them, on every engine."""

import asyncio

from korvet_fast.store.types import ABSENT, CompareAndSet
from store.engines import Engine


async def test_keys(engine: Engine) -> None:
    async with engine.scene() as scene:
        assert await scene.store.load("a/b") is None
        assert not await scene.store.save("a/b", b"1", b"0")
        assert await scene.store.save("a/b", b"1", ABSENT)
        assert not await scene.store.save("a/b", b"2", ABSENT)
        assert await scene.store.save("a/b", b"2", b"1")
        assert await scene.store.save("a/ä", b"", ABSENT)
        assert await scene.store.save("a/c", bytes(100_000), ABSENT)
        assert await scene.store.save("b", b"3", ABSENT)
        assert await scene.store.save("b", ABSENT, b"3")
        assert await scene.store.save("nothing", ABSENT, ABSENT)
        engine.crash()
    for _ in range(2):
        async with engine.scene() as scene:
            assert await scene.store.load("a/b") == b"2"
            assert await scene.store.load("a/ä") == b""
            assert await scene.store.load("b") is None
            assert list(await scene.store.scan("a/")) == ["a/b", "a/c", "a/ä"]
            assert list(await scene.store.scan("a/b")) == ["a/b"]
            assert await scene.store.scan("b/") == {}


async def test_key_has_one_winner(engine: Engine) -> None:
    async with engine.scene() as scene:
        results = await asyncio.gather(*(scene.store.save("key", b"%d" % number, ABSENT) for number in range(20)))
        assert sum(results) == 1
        assert await scene.store.load("key") == b"%d" % results.index(True)


async def test_several_keys_in_one_step(engine: Engine) -> None:
    async with engine.scene() as scene:
        save, scan = scene.store.save, scene.store.scan
        assert await save("a/1", b"1", ABSENT, CompareAndSet("a/2", b"2", ABSENT), CompareAndSet("a/3", b"3", ABSENT))
        # One that is not as expected, be it only compared, and nothing is set.
        assert not await save("a/1", b"x", b"1", CompareAndSet("a/2", b"2", b"0"))
        assert not await save(
            "a/1", ABSENT, b"1", CompareAndSet("a/4", b"x", ABSENT), CompareAndSet("a/3", ABSENT, ABSENT)
        )
        assert not await save("a/1", b"x", b"0", CompareAndSet("a/2", b"x", b"2"))
        assert await scan("a/") == {"a/1": b"1", "a/2": b"2", "a/3": b"3"}
        assert await save("a/4", b"4", ABSENT, CompareAndSet("a/1", ABSENT, b"1"), CompareAndSet("a/2", b"2", b"2"))
        engine.crash()
    async with engine.scene() as scene:
        assert await scene.store.scan("a/") == {"a/2": b"2", "a/3": b"3", "a/4": b"4"}
        assert await scene.store.save(
            "a/2", ABSENT, b"2", *(CompareAndSet(f"a/{n}", ABSENT, b"%d" % n) for n in (3, 4))
        )
        assert await scene.store.scan("a/") == {}


async def test_keys_many_changes(engine: Engine) -> None:
    """Old values are cleared away, and none comes back."""
    async with engine.scene() as scene:
        for number in range(50):
            await scene.store.save(f"gone/{number}", b"x", ABSENT)
            await scene.store.save(f"gone/{number}", ABSENT, b"x")

        async def count(key: str) -> None:
            value = None
            for number in range(1000):
                assert await scene.store.save(key, b"%d" % number, value)
                value = b"%d" % number

        await asyncio.gather(*(count(f"count/{number}") for number in range(5)))
        engine.crash()
    async with engine.scene() as scene:
        assert await scene.store.scan("gone/") == {}
        assert await scene.store.scan("count/") == {f"count/{number}": b"999" for number in range(5)}
