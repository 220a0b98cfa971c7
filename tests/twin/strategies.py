"""Inputs for both implementations: whole batches, message sets, streams, and ways to damage them."""

import struct
import zlib
from collections.abc import Callable
from random import Random

from hypothesis import strategies as st

from korvet_reference import compression
from korvet_reference.checksum import crc32c
from korvet_reference.header import HEADER, LAST, Batch, write_batch
from korvet_reference.records import Record, write_record

LIMIT = 1 << 20  # decompressed bytes, enough for everything made here

int64s = st.one_of(st.integers(-5, 5), st.integers(-LAST - 1, LAST))
int32s = st.one_of(st.integers(-3, 3), st.integers(-(1 << 31), (1 << 31) - 1))
int16s = st.one_of(st.integers(-3, 3), st.integers(-(1 << 15), (1 << 15) - 1))
times = st.one_of(st.integers(0, 2_000_000_000_000), int64s)
compressions = st.sampled_from(range(5))
maybe_bytes = st.one_of(st.none(), st.binary(max_size=8))


def seeded(make: Callable[[Random], bytes]) -> st.SearchStrategy[bytes]:
    """Values that `make` builds from a seed: cheaper than drawing every field, and hypothesis goes on from there."""
    return st.integers(0, (1 << 32) - 1).map(lambda seed: make(Random(seed)))


def cell(random: Random) -> bytes | None:
    """A key or value: null, short, or long enough to be worth compressing."""
    return random.choice([None, b"", random.randbytes(random.randrange(12)), bytes([random.randrange(256)]) * 300])


def number(random: Random, bits: int) -> int:
    """A signed integer of at most `bits` bits, often one that is near an end."""
    end = 1 << (bits - 1)
    return random.choice([0, -1, 1, end - 1, -end, random.randrange(-end, end), random.randrange(1000)])


def make_payload(random: Random, count: int) -> bytes:
    """`count` records; their offsets are dense and their times near, except sometimes one of them."""
    out = b""
    odd = random.randrange(8 * count)
    for place in range(count):
        delta = number(random, 32) if place == odd else place
        time = number(random, 64) if place == odd - count else random.randrange(1000)
        headers = [(random.randbytes(random.randrange(6)), cell(random)) for _ in range(random.choice([0, 0, 1, 3]))]
        out += write_record(Record(time, delta, cell(random), cell(random), headers))
    return out


def make_batch(random: Random, base: int | None = None) -> bytes:
    """A version 2 batch, most often one that passes `validate_batch`; sealed, whatever is in it."""
    count = random.randrange(1, 6)
    codec = random.randrange(5)
    payload = compression.compress(codec, make_payload(random, count))
    attributes = codec | random.choice([0, 0, 0, 0, 8, 8, 16, 32, 64, -32768])
    if random.randrange(20) == 0:
        attributes, count = number(random, 16), number(random, 32)
    start = random.choice([0, random.randrange(1 << 40)]) if base is None else base
    producer, epoch, sequence = random.choice(
        [(-1, -1, -1), (-1, -1, -1), (7, 0, 0), (7, 1, 9), (7, -1, 0), (7, 0, -1)]
    )
    header = Batch(
        start=0,
        size=0,
        base_offset=start,
        last_offset=start + max(count - 1, 0) + (random.randrange(20) == 0),
        count=count,
        leader_epoch=number(random, 32),
        attributes=attributes,
        compression=codec,
        log_append_time=False,
        transactional=False,
        control=False,
        first_timestamp=random.choice([1_700_000_000_000, 1_700_000_000_000, number(random, 64)]),
        max_timestamp=random.choice([1_700_000_000_000, number(random, 64)]),
        producer_id=producer,
        producer_epoch=epoch,
        base_sequence=sequence,
    )
    return bytes(write_batch(header, payload))


def make_sequence(random: Random) -> bytes:
    """Some batches one after another, mostly with rising offsets."""
    base, found = random.randrange(100), b""
    for _ in range(random.randrange(5)):
        found += make_batch(random, base)
        base += random.randrange(9)
    return found


def sealed(data: bytes) -> bytes:
    """The same with the checksum of its first batch made right, so that damage behind it is reached."""
    if len(data) < HEADER.size:
        return data
    end = min(max(12 + struct.unpack_from(">i", data, 8)[0], HEADER.size), len(data))
    return data[:17] + crc32c(data[21:end]).to_bytes(4, "big") + data[21:]


@st.composite
def damaged(draw: st.DrawFn, good: st.SearchStrategy[bytes], mend: Callable[[bytes], bytes] = bytes) -> bytes:
    """`good` bytes with one thing wrong: cut, lengthened, or a field overwritten; `mend` may make a checksum right."""
    data = draw(good)
    at = draw(st.integers(0, len(data)))
    match draw(st.integers(0, 5)):
        case 0:
            data = data[:at]
        case 1:
            data = data + draw(st.binary(min_size=1, max_size=20))
        case 2:
            data = data[:at] + draw(st.binary(max_size=4)) + data[at:]
        case 3:
            data = data[:at] + data[at + draw(st.integers(1, 4)) :]
        case _:
            wrong = draw(
                st.sampled_from([b"\xff", b"\x7f", b"\x80", b"\0", b"\xff" * 4, b"\x7f\xff\xff\xff", b"\xff" * 10])
            )
            data = data[:at] + wrong + data[at + len(wrong) :]
    return mend(data)


def message(magic: int, attributes: int, payload: bytes) -> bytes:
    """One message of Kafka 0.6 or 0.7 with its LENGTH and the right checksum."""
    data = bytes([magic, attributes] if magic else [magic]) + struct.pack(">I", zlib.crc32(payload)) + payload
    return struct.pack(">i", len(data)) + data


def make_message_set(random: Random, depth: int = 0) -> bytes:
    """Messages of magic 0 and 1, some of them wrappers, some of them inside each other; seldom one that is wrong."""
    found = b""
    for _ in range(random.randrange(min(depth, 1), 4)):
        magic = 2 if random.randrange(30) == 0 else random.randrange(2)
        codec = random.choice([0, 0, 0, 1, 2]) if magic == 1 and depth < 3 else 0
        payload = make_message_set(random, depth + 1) if codec else cell(random) or b""
        flags = codec | random.choice([0, 0, 4, 8]) if random.randrange(30) else 3
        found += message(magic, flags, compression.compress(codec, payload))
    return found


batches = seeded(make_batch)
sequences = seeded(make_sequence)
message_sets = seeded(make_message_set)
