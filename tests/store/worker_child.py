"""A worker's store as a process of its own, which a test tells what to do, line by line. Not a test itself.

Each line is a JSON list, a word and its arguments; the answer is a line of JSON.
"""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import uvloop

from korvet_fast.errors import KorvetError
from korvet_fast.store.types import LARGE, WHOLE, OffsetConflict
from korvet_fast.store.workers.store import WorkerStore
from store.record_batches import make_record_batch


async def do(store: WorkerStore, word: str, arguments: list[Any]) -> Any:
    """Do one thing."""
    if word == "acquire":
        granted = await store.acquire(arguments[0], WHOLE, epoch=0, floor=0)
        return [granted.epoch, granted.bounds.end]
    if word == "append":
        log, at, count, sync = arguments
        appending = store.open_log(log).append([make_record_batch(at, count)], at, sync, segment_limits=LARGE)
        await (appending.durable if sync else appending.stored)
        return True
    if word == "owns":
        return await store.is_leader(arguments[0])
    if word == "name":
        return store.processes.own
    if word == "serves":
        return store._keys._server is not None
    if word == "save":
        key, value, expected = (each and each.encode() for each in arguments)
        return await store.save(key.decode(), value, expected)
    if word == "load":
        found = await store.load(arguments[0])
        return found and found.decode()
    assert word == "close", word
    await store.close()
    return None


async def main(directory: Path, number: int) -> None:
    """Until the input ends, or `close`."""
    loop = asyncio.get_running_loop()
    store = WorkerStore(directory, number, directory / "locks")
    await store.open()
    print("open", flush=True)
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        word, *arguments = json.loads(line)
        try:
            answer = await do(store, word, arguments)
        except (KorvetError, OffsetConflict) as error:
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), flush=True)
        if word == "close":
            return


uvloop.run(main(Path(sys.argv[1]), int(sys.argv[2])))
