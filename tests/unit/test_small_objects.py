"""The interpreter's small objects lie in pools of ours, and are what they were: in processes of their own."""

import subprocess
import sys
from pathlib import Path

import pytest

from broker_process import BrokerProcess

BEFORE = """
old = [[at, bytes(at % 700), {at: str(at)}] for at in range(20_000)]  # the interpreter's own allocator has them

from korvet_fast._native import allocate_small_objects, give_back_small_objects
assert allocate_small_objects()
assert not allocate_small_objects()  # it is so already

def in_memory():
    return int(open("/proc/self/statm").read().split()[1]) * 4096
"""

A_FLOOD = """
import gc
gc.collect()
before = in_memory()
flood = [(at, bytes(at % 480), [at], {at: at}) for at in range(300_000)]
peak = in_memory() - before
assert peak > 100 << 20, peak
kept = flood[::1000]
del flood
assert give_back_small_objects() > peak // 2
assert in_memory() - before < peak // 4, (in_memory() - before, peak)  # each that is kept has parts in five pools
assert all(each == (at, bytes(at % 480), [at], {at: at}) for at, each in zip(range(0, 300_000, 1000), kept))
"""

OLD_ONES = """
for each in old:  # these blocks grow, and go, where they came from
    each.extend(range(40))
    each[1] += b"more"
for at, each in enumerate(old):
    assert each[:3] == [at, bytes(at % 700) + b"more", {at: str(at)}]
del old[::2]
old.clear()
"""

THREADS = """
import random, threading
sys_errors = []
threading.excepthook = sys_errors.append
over = threading.Event()

def churn(seed):
    chance, held = random.Random(seed), []
    for round in range(60_000):
        size = chance.randrange(600)
        held.append((size, bytearray([size % 256]) * size))
        if len(held) > 500:
            size, found = held.pop(chance.randrange(500))
            assert found == bytes([size % 256]) * size

def give_back():
    while not over.wait(0.001):
        give_back_small_objects()

giving = threading.Thread(target=give_back)
giving.start()
threads = [threading.Thread(target=churn, args=(seed,)) for seed in range(4)]
for each in threads: each.start()
for each in threads: each.join()
over.set()
giving.join()
assert not sys_errors, sys_errors
"""

# Steps on blocks, by the interpreter's own functions; a block's bytes are all the same.
BLOCKS = """
import ctypes, random
api = ctypes.pythonapi
size_t, pointer = ctypes.c_size_t, ctypes.c_void_p
families = []
for prefix in ("PyMem", "PyObject"):
    make, clear, change, free = (getattr(api, f"{prefix}_{name}") for name in ("Malloc", "Calloc", "Realloc", "Free"))
    for function in (make, clear, change):
        function.restype = pointer
    make.argtypes, clear.argtypes, change.argtypes = [size_t], [size_t, size_t], [pointer, size_t]
    free.argtypes, free.restype = [pointer], None
    families.append((make, clear, change, free))

chance, held = random.Random(7), []
assert families[0][3](None) is None
for round in range(200_000):
    kind = chance.randrange(8)
    size = chance.choice((chance.randrange(40), chance.randrange(560), chance.randrange(3000)))
    if kind < 2 or not held:
        family = chance.randrange(2)
        held.append([family, families[family][0](size), size, 0])
    elif kind == 2:
        family = chance.randrange(2)
        block = families[family][1](size, 1)
        assert ctypes.string_at(block, size) == bytes(size)
        held.append([family, block, size, 0])
    else:
        at = chance.randrange(len(held))
        held[at], held[-1] = held[-1], held[at]
        family, block, old, mark = held[-1]
        assert ctypes.string_at(block, old) == bytes([mark]) * old
        if kind < 5:
            block = families[family][2](block, size)
            least = min(old, size)
            assert ctypes.string_at(block, least) == bytes([mark]) * least
            held[-1][1:3] = block, size
        else:
            held.pop()
            families[family][3](block)
            continue
    assert held[-1][1] % 16 == 0
    held[-1][3] = round % 256
    ctypes.memset(held[-1][1], round % 256, held[-1][2])
    if not round % 5000:
        give_back_small_objects()
"""


def run(program: str, **environment: str) -> None:
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("then", [A_FLOOD, OLD_ONES, THREADS, BLOCKS], ids=["flood", "old ones", "threads", "blocks"])
def test_small_objects_are_what_they_were_and_their_memory_goes_back(then: str) -> None:
    run(BEFORE + then)


@pytest.mark.parametrize("chosen", [{"PYTHONMALLOC": "malloc"}, {"PYTHONMALLOC": "debug"}, {"PYTHONTRACEMALLOC": "1"}])
def test_an_allocator_that_somebody_chose_stays(chosen: dict[str, str]) -> None:
    program = "from korvet_fast import _native\nassert not _native.allocate_small_objects()\n"
    run(program + "assert _native.give_back_small_objects() == 0", **chosen)


def test_a_process_with_few_addresses_keeps_them() -> None:
    limit = "import resource\nresource.setrlimit(resource.RLIMIT_AS, (32 << 30, resource.RLIM_INFINITY))\n"
    run(limit + "from korvet_fast._native import allocate_small_objects\nassert not allocate_small_objects()")


def test_a_broker_has_its_small_objects_there(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path / "data") as broker:
        maps = Path(f"/proc/{broker.pid}/maps").read_text().splitlines()
        sizes = [int(end, 16) - int(start, 16) for start, _, end in (line.split()[0].partition("-") for line in maps)]
        assert max(sizes) >= 16 << 30
