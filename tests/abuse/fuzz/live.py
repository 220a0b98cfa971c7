"""The fuzzer as an attack: many connections that send requests made worse, and note what they sent.

KORVET_TEST_FUZZ_SEED says where chance begins; KORVET_TEST_FUZZ_SENT is the directory for what was sent.
"""

import os
import random
import struct
import time
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from abuse.attack import Target, attack
from abuse.fuzz.corpus import built, by_route, recorded
from abuse.fuzz.mutation import mutate
from abuse.wire import Line

NUMBER = "fuzz"
CONNECTIONS = 40
KEPT = 64 << 20  # bytes of what was sent last that are kept at least
NOTE = struct.Struct(">dI")  # when, and how many bytes follow


@attack(NUMBER, "whole requests of all routes, made worse", processes=2, stores=())
def fuzz(target: Target, worker: int) -> int:
    """Returns how many connections the broker ended."""
    chance = random.Random(f"{os.environ['KORVET_TEST_FUZZ_SEED']}-{worker}")
    frames = by_route(recorded() + built())
    place = Path(os.environ["KORVET_TEST_FUZZ_SENT"])
    ended = part = 0
    lines: list[Line] = []
    while target.left() > 0:
        # Two files in turn, so that what was sent last is always there and the disk does not fill up.
        with (place / f"sent-{worker}-{part % 2}").open("wb", buffering=0) as sent:
            while target.left() > 0 and sent.tell() < KEPT:
                while len(lines) < CONNECTIONS:
                    lines.append(target.line())
                    lines[-1].socket.settimeout(0.001)
                line = chance.choice(lines)
                if not _talk(line, _burst(frames, chance), sent):
                    ended += 1
                    line.close()
                    lines.remove(line)
        part += 1
    return ended


def _burst(frames: dict[int, list[bytes]], chance: random.Random) -> bytes:
    """A few requests with their lengths, which are seldom wrong."""
    burst = b""
    for _ in range(chance.choice((1, 1, 3, 20))):
        payload = mutate(frames, chance)
        length = len(payload) if chance.random() < 0.98 else chance.choice((0, 1, len(payload) + 5, 2**31 - 1))
        burst += struct.pack(">I", length) + payload
    return burst


def _talk(line: Line, burst: bytes, sent: BinaryIO) -> bool:
    """Send this and take what answers there are; False if the connection is at its end."""
    sent.write(NOTE.pack(time.monotonic(), len(burst)) + burst)
    try:
        line.send(burst)
        while line.socket.recv(1 << 20):
            pass
    except TimeoutError:
        return len(burst) < 1 << 20  # a large one may have been sent in part
    except OSError:
        return False
    return False


def read_sent(file: Path) -> Iterator[tuple[float, bytes]]:
    """When each burst was sent (monotonic seconds), and its bytes."""
    data = file.read_bytes()
    at = 0
    while at + NOTE.size <= len(data):
        when, size = NOTE.unpack_from(data, at)
        at += NOTE.size
        yield when, data[at : at + size]
        at += size
