"""Pages of Arrow out of batches: the same rows as the reference lists, in the types that Spark demands."""

import ctypes
import gc
from random import Random
from types import ModuleType
from typing import Any, ClassVar

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import korvet_fast._native as native
from korvet_fast.errors import CodecError
from korvet_reference import compression
from korvet_reference.header import Batch, write_batch
from korvet_reference.records import Record, write_record
from twin.arrow import rows
from twin.implementations import Outcome, agree
from twin.profile import examples
from twin.strategies import LIMIT, cell, damaged, int64s, make_payload, number, sealed, seeded, sequences

NAMES = ["key", "value", "topic", "partition", "offset", "timestamp", "timestampType", "headers"]
SCHEMA = pa.schema(
    [
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("timestamp", pa.timestamp("us", tz="UTC")),
        ("timestampType", pa.int32()),
        ("headers", pa.list_(pa.field("element", pa.struct([("key", pa.string()), ("value", pa.binary())])))),
    ]
)
EVERYTHING = (0, 1 << 62, 1 << 40, 1 << 40, LIMIT)
CONTROL, TRANSACTIONAL, APPENDED = 32, 16, 8


def pages(*arguments: Any) -> Outcome:
    """One call to both implementations, which must agree in everything."""

    def call(impl: ModuleType) -> object:
        page = impl.to_arrow(*arguments)
        assert len(page) == len(rows(page))
        return rows(page), page.next, page.nbytes, page.whole

    return agree(call)


def batch(base: int, payload: bytes, count: int, attributes: int = 0, producer: int = -1, last: int = -1) -> bytes:
    header = Batch(
        start=0, size=0, base_offset=base, last_offset=max(last, base + count - 1), count=count, leader_epoch=0,
        attributes=attributes, compression=attributes & 7, log_append_time=False, transactional=False, control=False,
        first_timestamp=1_700_000_000_000, max_timestamp=1_800_000_000_000, producer_id=producer, producer_epoch=0,
        base_sequence=0,
    )  # fmt: skip
    return bytes(write_batch(header, compression.compress(attributes & 7, payload)))


def record(place: int = 0, key: bytes | None = b"k", value: bytes | None = b"v", headers: Any = ()) -> bytes:
    return write_record(Record(place, place, key, value, list(headers)))


def one(base: int, attributes: int = 0, producer: int = -1) -> bytes:
    return batch(base, record(value=b"%d" % base), 1, attributes, producer)


def marker(base: int, producer: int, kind: int) -> bytes:
    """The end of a transaction: 0 abort, 1 commit."""
    return batch(base, record(key=bytes([0, 0, 0, kind])), 1, CONTROL | TRANSACTIONAL, producer)


def make_log(random: Random) -> bytes:
    """Batches as in a partition: rising offsets with gaps, all compressions, transactions, some empty or torn."""
    found, base = b"", random.randrange(20)
    for _ in range(random.randrange(7)):
        count = random.randrange(5)
        producer = random.choice([-1, 7, 8, 9])
        match random.randrange(6):
            case 0:
                found += marker(base, producer, random.randrange(2))
                base += 1
                continue
            case 1:
                payload = make_payload(random, count) if count else b""
            case _:
                payload = b"".join(
                    record(
                        place, cell(random), cell(random), [(random.randbytes(3), cell(random))] * random.randrange(3)
                    )
                    for place in range(count)
                )
        flags = random.randrange(5) | random.choice([0, 0, APPENDED, TRANSACTIONAL, TRANSACTIONAL])
        last = base + max(count - 1, 0) + random.choice([0, 0, 3])
        found += batch(base, payload, count, flags, producer, last)
        base = last + 1 + random.choice([0, 0, 0, 5])
    return found[: len(found) - random.choice([0, 0, 0, number(random, 6) % 100])]


logs = seeded(make_log)
wanted = st.lists(st.sampled_from(NAMES), unique=True)
bounds = st.integers(0, 60)
aborts = st.lists(st.tuples(st.sampled_from([7, 8, 9]), bounds), max_size=4)


@given(logs, wanted, bounds, bounds, st.integers(0, 12), st.integers(0, 1500), aborts)
@examples(400)
def test_pages(data: bytes, columns: list[str], start: int, end: int, rows: int, size: int, aborted: Any) -> None:
    pages(data, "topic", 3, columns, start, end, rows, size, LIMIT, aborted)


@given(st.one_of(sequences, damaged(sequences, sealed), damaged(logs)), int64s, int64s, st.sampled_from([LIMIT, 60]))
@examples(400)
def test_pages_of_anything(data: bytes, start: int, end: int, limit: int) -> None:
    pages(data, "t", 0, NAMES, start, end, 1 << 40, 1 << 40, limit, [(7, 0)])


@given(logs, st.integers(0, 5), st.integers(0, 600), aborts)
@examples(200)
def test_page_after_page_is_all_there_is(data: bytes, most: int, size: int, aborted: list[tuple[int, int]]) -> None:
    """However small the pages, they list what one page does, and end where it ends."""
    try:
        whole = native.to_arrow(data, "t", 0, NAMES, *EVERYTHING, aborted)
    except CodecError:
        return
    found, start, more = [], 0, True
    while more:
        page = native.to_arrow(data, "t", 0, NAMES, start, 1 << 62, most, size, LIMIT, aborted)
        assert page.next > start or page.whole
        found += rows(page)
        start, more = page.next, not page.whole
    assert (found, start) == (rows(whole), whole.next)


def test_the_schema_is_what_spark_demands() -> None:
    for data in (b"", one(3), batch(0, record(headers=[(b"h", None)]), 1)):
        page = native.to_arrow(data, "t", 0, NAMES, *EVERYTHING)
        assert pa.record_batch(page).schema.equals(SCHEMA, check_metadata=True)
        assert pa.array(page).type == pa.struct(list(SCHEMA))
    some = native.to_arrow(one(3), "t", 0, ["offset", "key"], *EVERYTHING)
    assert pa.record_batch(some).schema == pa.schema([SCHEMA.field("offset"), SCHEMA.field("key")])


def test_a_row_in_full(impl: ModuleType) -> None:
    headers = [(b"a", b"1"), (b"\xffb", None)]
    data = batch(5, record(0, None, b"one", headers) + record(1, b"", None), 2)
    data += batch(7, record(0, b"k", b"v"), 1, APPENDED)
    page = impl.to_arrow(data, "orders", 4, NAMES, *EVERYTHING)
    assert rows(page) == [
        (None, b"one", "orders", 4, 5, 1_700_000_000_000_000, 0, [("a", b"1"), ("\ufffdb", None)]),
        (b"", None, "orders", 4, 6, 1_700_000_000_001_000, 0, None),
        (b"k", b"v", "orders", 4, 7, 1_800_000_000_000_000, 1, None),
    ]
    assert (page.next, page.whole) == (8, True)


def test_where_reading_goes_on(impl: ModuleType) -> None:
    data = one(0) + batch(1, b"".join(record(place) for place in range(3)), 3, last=9) + marker(10, 7, 1) + one(11)

    def read(start: int, end: int, most: int = 100) -> tuple[list[int], int, bool]:
        page = impl.to_arrow(data, "t", 0, ["offset"], start, end, most, 1 << 20, LIMIT)
        return [offset for (offset,) in rows(page)], page.next, page.whole

    assert read(0, 100) == ([0, 1, 2, 3, 11], 12, True)
    assert read(2, 11) == ([2, 3], 11, True)
    assert read(2, 3) == ([2], 3, True)
    assert read(5, 8) == ([], 8, True)  # a gap that compaction left
    assert read(0, 100, 1) == ([0], 1, False)
    assert read(1, 100, 1) == ([1, 2, 3], 11, False)  # past the marker
    assert read(11, 100, 1) == ([11], 12, True)
    assert read(12, 100) == ([], 12, True)
    assert read(7, 5) == ([], 7, True)
    torn = impl.to_arrow(data[:-1], "t", 0, ["offset"], *EVERYTHING)
    assert (len(torn), torn.next, torn.whole) == (4, 11, True)


def test_aborted_transactions_are_left_out(impl: ModuleType) -> None:
    data = one(0, TRANSACTIONAL, 7) + one(1, TRANSACTIONAL, 8) + one(2, 0, 7) + marker(3, 7, 0)
    data += one(4, TRANSACTIONAL, 7) + marker(5, 7, 1) + marker(6, 8, 1) + one(7, TRANSACTIONAL, 8)

    def read(aborted: list[tuple[int, int]], start: int = 0) -> list[int]:
        page = impl.to_arrow(data, "t", 0, ["offset"], start, *EVERYTHING[1:], aborted)
        return [offset for (offset,) in rows(page)]

    assert read([]) == [0, 1, 2, 4, 7]
    assert read([(7, 0)]) == [1, 2, 4, 7]
    assert read([(7, 0), (8, 1)]) == [2, 4]  # a commit ends nothing that was aborted
    assert read([(8, 5), (7, 0)]) == [1, 2, 4]
    assert read([(7, 0)], start=4) == [4, 7]  # the marker below the start was heeded


@pytest.mark.parametrize("attributes", range(5))
def test_a_bad_batch_is_named(impl: ModuleType, attributes: int) -> None:
    good, bad = one(41), bytearray(one(42, attributes))
    bad[-1] ^= 1
    with pytest.raises(CodecError, match="42") as caught:
        impl.to_arrow(good + bad, "t", 0, ["value"], *EVERYTHING)
    assert caught.value.code == "BAD_CRC"
    assert len(impl.to_arrow(good + bad, "t", 0, ["value"], 0, 42, 9, 1 << 20, LIMIT)) == 1


def test_what_cannot_be_told(impl: ModuleType) -> None:
    late = bytearray(one(0))
    late[27:35] = (1 << 62).to_bytes(8, "big")
    for arguments, code in (
        ((one(0), "t", 0, ["colour"], *EVERYTHING), "BAD_COLUMNS"),
        ((one(0), "t", 0, ["key", "key"], *EVERYTHING), "BAD_COLUMNS"),
        ((sealed(bytes(late)), "t", 0, ["timestamp"], *EVERYTHING), "OUT_OF_RANGE"),
        ((b"\0" * 16 + b"\1" + b"\0" * 50, "t", 0, [], *EVERYTHING), "BAD_MAGIC"),
        ((batch(0, b"v" * 900, 1, 4), "t", 0, [], 0, 9, 9, 9, 100), "DECOMPRESSION_LIMIT"),
    ):
        with pytest.raises(CodecError) as caught:
            impl.to_arrow(*arguments)
        assert caught.value.code == code


def test_buffers_outlive_the_page_and_are_not_copied() -> None:
    page = native.to_arrow(one(7), "t", 0, ["value"], *EVERYTHING)
    first, second = pa.record_batch(page), pa.record_batch(page)
    del page
    gc.collect()
    assert first["value"].to_pylist() == second["value"].to_pylist() == [b"7"]
    assert first["value"].buffers()[2].address == second["value"].buffers()[2].address


class Mallinfo(ctypes.Structure):
    """The figures of the C library's allocator; in use are `hblkhd` (mapped on their own) and `uordblks`."""

    NAMES = ("arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks", "fordblks", "keepcost")
    _fields_: ClassVar = [(name, ctypes.c_size_t) for name in NAMES]


def test_memory_is_given_back() -> None:
    """A thousand pages of two megabytes would be 2 GB."""
    data = batch(0, b"".join(record(place, value=bytes(2000)) for place in range(1000)), 1000)

    def held() -> int:
        gc.collect()
        found = ctypes.CDLL(None).mallinfo2
        found.restype = Mallinfo
        return int(found().hblkhd + found().uordblks)

    before = held()
    for place in range(1000):
        page = native.to_arrow(data, "t", 0, NAMES, *EVERYTHING)
        match place % 4:
            case 0:
                pa.record_batch(page)
            case 1:
                kept = pa.record_batch(page).column(1)
                del page
                assert len(kept) == 1000
            case 2:
                page.__arrow_c_array__()  # nobody takes it out of the capsules
    del page, kept
    assert held() - before < 20_000_000
