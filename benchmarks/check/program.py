"""The program under callgrind: each native call and each request, a few times under its name. `count.py` starts it."""

import ctypes
import gc
import sys
from collections.abc import Callable

import uvloop

import korvet_fast._native as native
from benchmarks import probe
from benchmarks.check import NOTHING, REPEATS, REQUESTS
from benchmarks.codec.calls import Call
from benchmarks.codec.calls import prepare as prepare_calls
from benchmarks.requests.cases import Case, verify
from benchmarks.requests.connections import CONNECTIONS
from benchmarks.requests.wire import Wire

UNENDING = 1e9  # seconds of a turn of the loop: under callgrind a millisecond is over after a few lines
WARM = 300  # requests before anything counts: Python adapts its bytecode to what it runs


async def count(words: list[str]) -> None:
    """Has callgrind write down everything whose name holds one of the words (none: all)."""
    library = probe.load()
    if queue := sys.modules.get("korvet_fast.core.fair_queue"):  # earlier commits have none
        queue.SLICE = UNENDING  # type: ignore[attr-defined]
    calls = choose_calls(words)
    gc.disable()  # a collection would fall into whatever is counted at that moment
    library.probe_start()
    for name, call, repeats in calls:
        call()
        library.probe_zero()
        for _ in range(repeats):
            call()
        library.probe_dump(f"call {repeats} {name}".encode())
    library.probe_stop()
    for connected in (one for one in CONNECTIONS if one.has(words)):
        async with connected.opened() as wire:
            await count_requests(library, wire, await connected.prepare(wire, words))


async def count_requests(library: ctypes.PyDLL, wire: Wire, cases: list[Case]) -> None:
    """Counts these, once Python has seen all of them."""
    for case in cases:
        await wire.ask(case.frames, WARM)
    gc.collect()
    library.probe_start()
    for case in cases:
        await wire.ask(case.frames, REQUESTS)
        prepared = wire.prepare(case.frames, REQUESTS)
        library.probe_zero()
        await wire.send(prepared)
        library.probe_dump(f"request {REQUESTS} {case.name}".encode())
        await verify(wire, case)  # still
    library.probe_stop()


def choose_calls(words: list[str]) -> list[tuple[str, Callable[[], object], int]]:
    """Names of native calls, the calls, and how often each is counted; before them those that do nothing."""
    names = list(prepare_calls(1))
    chosen: list[tuple[str, Call, int]] = []
    for count, repeats in REPEATS.items():
        chosen.append((NOTHING, lambda _: lambda: None, repeats))
        if any(wanted(f"{name}, {count:,}", words) for name in names):
            calls = prepare_calls(count)
            some = [name for name in names if wanted(f"{name}, {count:,}", words)]
            chosen += [(f"{name}, {count:,}", calls[name], repeats) for name in some]
    return [(name, call(native), repeats) for name, call, repeats in chosen if exists(name, call)]


def exists(name: str, call: Call) -> bool:
    """Whether the extension has this call: that of an earlier commit may not, and the rest is compared all the same."""
    try:
        call(native)()
    except AttributeError as error:
        print(f"{name} is left out: {error}", file=sys.stderr)
        return False
    return True


def wanted(name: str, words: list[str]) -> bool:
    return not words or any(word.lower() in name.lower() for word in words)


if __name__ == "__main__":
    uvloop.run(count(sys.argv[1:]))
