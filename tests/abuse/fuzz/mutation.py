"""Requests made worse: in their bytes, and in their fields. Pure; all chance comes from the generator given."""

import random
from collections.abc import Callable
from typing import Any

from kafka_messages import CATALOG
from korvet_fast.errors import CodecError
from korvet_fast.wire.kafka.routes import ROUTES

ELEMENTS = 100_000
LARGE = 256 * 1024  # bytes of a request above which it is not made any larger
_HEADER = 8  # key, version, correlation id
_NUMBERS = (
    b"\x7f\xff\xff\xff",
    b"\xff\xff\xff\xff",
    b"\x80\0\0\0",
    b"\xff\xff\xff\xff\x0f",
    b"\xff\xff",
    b"\x7f\xff",
    b"\0\0",
)
_INTEGERS = (-(2**31), -2, -1, 0, 1, 2, 255, 32_767, 2**31 - 1)
_TIMES = (2, 3, 10, 100, 1000, 5000)

Mutation = Callable[[bytes, bytes, random.Random], bytes]  # a request, another one, chance


def mutate(frames: dict[int, list[bytes]], chance: random.Random) -> bytes:
    """A request of any route, changed once or several times."""
    one, other = (chance.choice(frames[chance.choice(list(frames))]) for _ in range(2))
    for _ in range(chance.choice((1, 1, 1, 2, 4))):
        one = chance.choice(MUTATIONS)(one, other, chance)
    return one


def _flip(one: bytes, _: bytes, chance: random.Random) -> bytes:
    changed = bytearray(one)
    for _unused in range(chance.randint(1, 8)):
        if len(changed) > _HEADER:
            changed[chance.randrange(_HEADER, len(changed))] ^= 1 << chance.randrange(8)
    return bytes(changed)


def _lie(one: bytes, _: bytes, chance: random.Random) -> bytes:
    """A length or a count that is not true."""
    number = chance.choice(_NUMBERS)
    at = chance.randrange(min(_HEADER, len(one)), len(one) + 1)
    return one[:at] + number + one[at + len(number) :]


def _miscount(one: bytes, _: bytes, chance: random.Random) -> bytes:
    """A byte, perhaps the end of a count, that is a little off."""
    if len(one) <= _HEADER:
        return one
    at = chance.randrange(_HEADER, len(one))
    return one[:at] + bytes([(one[at] + chance.choice((-2, -1, 1, 2, 100))) % 256]) + one[at + 1 :]


def _truncate(one: bytes, _: bytes, chance: random.Random) -> bytes:
    return one[: chance.randrange(len(one) + 1)]


def _stutter(one: bytes, _: bytes, chance: random.Random) -> bytes:
    """A stretch of bytes said again and again."""
    if len(one) <= _HEADER:
        return one
    start = chance.randrange(_HEADER, len(one))
    stretch = one[start : start + chance.randint(1, 64)]
    times = min(chance.choice(_TIMES), LARGE // len(stretch))
    return one[:start] + stretch * times + one[start + len(stretch) :]


def _splice(one: bytes, other: bytes, chance: random.Random) -> bytes:
    """The front of one request, the back of another."""
    return one[: chance.randrange(len(one) + 1)] + other[chance.randrange(len(other) + 1) :]


def _reversion(one: bytes, _: bytes, chance: random.Random) -> bytes:
    """Said to be of another version."""
    route = ROUTES.get(int.from_bytes(one[:2], "big"))
    version = chance.choice((0, 99, 32_767)) if route is None else chance.randint(0, route.highest + 1)
    return one[:2] + version.to_bytes(2, "big") + one[4:]


def _insert(one: bytes, _: bytes, chance: random.Random) -> bytes:
    """Many bytes where there were none."""
    at = chance.randrange(min(_HEADER, len(one)), len(one) + 1)
    return one[:at] + chance.choice((b"a", b"\0", b"\xff", b"\x81")) * chance.choice((100, 32_768, 65_536)) + one[at:]


def _refill(one: bytes, _: bytes, chance: random.Random) -> bytes:
    """Well formed, with other fields: lists repeated, strings grown, numbers at their ends."""
    key, version = int.from_bytes(one[:2], "big"), int.from_bytes(one[2:4], "big")
    message = CATALOG.get(key)
    if message is None or len(one) > LARGE:
        return one
    try:
        values = message.request.decode(one, version, ELEMENTS)
        for _unused in range(chance.choice((1, 1, 2, 3))):
            _change(values, chance)
        return message.request.encode(values | {"api_key": key, "api_version": version}, version)
    except (CodecError, TypeError, OverflowError):
        return one  # it was malformed already, or cannot be written so


def _change(values: dict[str, Any], chance: random.Random) -> None:
    """One field, anywhere below."""
    where: Any = values
    name: Any = chance.choice(list(values))
    while isinstance(where[name], (dict, list)) and where[name] and chance.random() < 0.7:
        where = where[name]
        name = chance.choice(list(where)) if isinstance(where, dict) else chance.randrange(len(where))
    where[name] = _other(where[name], chance)


def _other(value: Any, chance: random.Random) -> Any:
    if isinstance(value, list):
        return (value * chance.choice(_TIMES))[:20_000]
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return chance.choice(_INTEGERS)
    if isinstance(value, str):
        grown = (value or "x") * chance.choice(_TIMES)
        return chance.choice(("", grown[:32_767], grown[:249], "(?:.?){300}", "\x1b[2J", "text"))
    if isinstance(value, (bytes, memoryview)):
        return bytes(value) * chance.choice((0, 2, 100))
    return value


MUTATIONS: tuple[Mutation, ...] = (
    _flip,
    _lie,
    _miscount,
    _truncate,
    _stutter,
    _splice,
    _reversion,
    _insert,
    _refill,
    _refill,  # what is well formed goes deepest
    _refill,
)
