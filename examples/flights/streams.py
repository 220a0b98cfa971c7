"""A topic read out of Redis, past the broker: by redis-cli, as a person would, or by redis-py where there is none."""

import shutil
import subprocess
from collections.abc import Iterator

from benchmarks.peers.redis import Redis

CLI = shutil.which("redis-cli")
FIELDS = [b"key", b"value", b"timestamp", b"header.line"]  # of every record of the demo, in this order


def reader() -> str:
    """By what this machine reads Redis."""
    return "redis-cli" if CLI else "redis-py"


def records(redis: Redis, key: str) -> Iterator[tuple[int, bytes, bytes]]:
    """(line number, key, value) of each entry of the stream, first one first. Exits when an entry has other fields."""
    for names, values in _entries(redis, key):
        if names != FIELDS:
            raise SystemExit(f"an entry of {key} has the fields {names}, not {FIELDS}")
        yield int(values[3]), values[0], values[1]


def _entries(redis: Redis, key: str) -> Iterator[tuple[list[bytes], list[bytes]]]:
    if CLI is None:
        for _, fields in redis.client.xrange(key):
            yield list(fields), list(fields.values())
        return
    # One line for the id, each field's name and each value: no value of the demo holds a line break.
    lines = _ask(redis, "XRANGE", key, "-", "+").rstrip(b"\n").split(b"\n")
    step = 1 + 2 * len(FIELDS)
    for at in range(0, len(lines), step):
        yield lines[at + 1 : at + step : 2], lines[at + 2 : at + step : 2]


def first(redis: Redis, key: str) -> str:
    """The command that a person types to see the stream's first entry, and Redis's answer."""
    command = ("XRANGE", key, "-", "+", "COUNT", "1")
    typed = f"$ redis-cli -p {redis.port} {' '.join(command)}\n"
    if CLI:
        return typed + _ask(redis, *command).decode()
    ((number, fields),) = redis.client.xrange(key, count=1)
    return typed + "\n".join(word.decode() for word in (number, *(word for pair in fields.items() for word in pair)))


def size(redis: Redis, keys: list[str]) -> int:
    """Bytes of memory that these streams take."""
    return sum(int(redis.client.memory_usage(key, samples=0) or 0) for key in keys)


def _ask(redis: Redis, *words: str) -> bytes:
    command = [str(CLI), "-p", str(redis.port), "--raw", *words]
    return subprocess.run(command, check=True, capture_output=True).stdout
