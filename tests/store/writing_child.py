"""A process that writes to a store until it is killed; it prints what was acknowledged. Not a test itself."""

import asyncio
import sys
from pathlib import Path

from korvet_fast.store.embedded.store import EmbeddedStore
from store.record_batches import make_record_batch, up_to


async def write_log(store: EmbeddedStore, log: str, size: int) -> None:
    """One record at a time, as quickly as it becomes durable, four under way."""
    end = (await store.bounds(log)).end
    waiting: list[tuple[int, asyncio.Future[None]]] = []
    while True:
        appending = store.open_log(log).append(
            [make_record_batch(end, size=size)], end, sync=True, segment_limits=up_to(50_000)
        )
        waiting.append((end, appending.durable))
        end += 1
        if len(waiting) == 4:
            offset, durable = waiting.pop(0)
            await durable
            print("log", log, offset, flush=True)


async def write_keys(store: EmbeddedStore) -> None:
    """A counter, and keys that come and go."""
    value = await store.load("n")
    while True:
        following = b"%d" % (int(value or 0) + 1)
        assert await store.save("n", following, value)
        value = following
        print("key", "n", int(value), flush=True)


async def close_idle(store: EmbeddedStore) -> None:
    """Whenever a log is at rest for a moment it is closed."""
    while True:
        await store.close_idle()
        for log in store._logs.values():
            log.used = False


async def main(directory: Path, how: list[str]) -> None:
    """All at once, with small segments so that files change often."""
    store = EmbeddedStore(directory)
    await store.open()
    await asyncio.gather(
        *(write_log(store, f"log:{number}", 20 + 3000 * number) for number in range(3)),
        write_keys(store),
        *(close_idle(store) for word in how if word == "idle"),
    )


asyncio.run(main(Path(sys.argv[1]), sys.argv[2:]))
