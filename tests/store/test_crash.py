"""kill -9 of a process that writes: what it was told is durable is there, in order, once."""

import os
import signal
import subprocess
import sys
from pathlib import Path

from korvet_fast.errors import StoreError
from korvet_fast.store.embedded.store import EmbeddedStore
from store.record_batches import read_all

ROUNDS = 5
ACKS = 300  # in one round, before the process is killed


def start(directory: Path, *how: str) -> "subprocess.Popen[str]":
    """The writer, as a process of its own; "idle": it closes logs all the time."""
    tests = Path(__file__).parent.parent
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tests), str(tests.parent)])}
    command = [sys.executable, str(tests / "store" / "writing_child.py"), str(directory), *how]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)


async def test_kill(tmp_path: Path) -> None:
    acked: dict[str, int] = {}
    for killed in range(1, ROUNDS + 1):
        child = start(tmp_path)
        assert child.stdout is not None
        for number, line in enumerate(child.stdout):
            _, name, value = line.split()
            acked[name] = int(value)
            if number == ACKS:
                child.send_signal(signal.SIGKILL)
                break
        child.stdout.close()
        assert child.wait() == -signal.SIGKILL
        assert number == ACKS, f"the writer ended by itself in round {killed}"
        store = EmbeddedStore(tmp_path)
        await store.open()
        for name in ("log:0", "log:1", "log:2"):
            present = await read_all(store, name)
            assert present == list(range(len(present)))
            assert len(present) > acked.get(name, -1)
        assert int(await store.load("n") or 0) >= acked["n"]
        if killed % 2:
            await store.close()
        else:
            store._release()


async def test_lock_of_another_process(tmp_path: Path) -> None:
    """The message names the process; its death frees the directory."""
    child = start(tmp_path)
    assert child.stdout is not None
    child.stdout.readline()
    store = EmbeddedStore(tmp_path)
    try:
        await store.open()
    except StoreError as error:
        assert f"in use by the process {child.pid}" in error.detail
    else:
        raise AssertionError("two processes opened one directory")
    finally:
        child.kill()
        child.stdout.close()
        child.wait()
    await store.open()
    await store.close()
