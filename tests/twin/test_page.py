"""Replies to XRANGE as batches."""

from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import korvet_fast._native as native
import korvet_reference as reference
from korvet_fast.errors import CodecError
from korvet_reference.header import LAST
from korvet_reference.json_headers import read_members
from twin.implementations import agree, plain
from twin.profile import examples
from twin.strategies import LIMIT, batches, compressions, damaged, int64s
from twin.streams import foreign, json_noise, objects, stored, write_reply

foreign_replies = foreign().map(write_reply)
noise = st.text("*$:-012x\r\n", max_size=40).map(str.encode)
limits = st.sampled_from([LIMIT, LIMIT, 0, 100, 200])
starts = st.one_of(st.integers(-5, 5000), int64s)
bit_counts = st.one_of(st.sampled_from([10, 10, 10, 0, 1, 16]), st.integers(0, 64))


def page_of(found: Any, compression: int, impl: ModuleType) -> Any:
    """The result of `decode_records`, with the batches read: compressed bytes may differ."""
    batches, *rest = found
    if compression == 0:
        return bytes(batches), *rest
    shown = [
        (head.base_offset, head.count, head.compression, head.leader_epoch)
        for head in impl.batch_headers(batches, True)
    ]
    return impl.to_columns(batches, LIMIT), shown, *rest


@given(
    st.one_of(foreign_replies, foreign_replies, damaged(foreign_replies), noise, st.binary(max_size=30)),
    bit_counts,
    starts,
    limits,
    st.integers(0, 5),
    st.integers(-1, 9),
)
@examples(600)
def test_entries(reply: bytes, bits: int, start: int, limit: int, compression: int, epoch: int) -> None:
    agree(lambda impl: page_of(impl.decode_records(reply, bits, start, limit, compression, epoch), compression, impl))


@given(batches, st.one_of(st.integers(1, 3000), st.integers(1, LAST - 10)), bit_counts, compressions, st.integers(1, 9))
@examples(300)
def test_there_and_back(batch: bytes, base: int, bits: int, compression: int, size: int) -> None:
    """Appended records read as they were, in answers of any size."""
    try:
        packed = native.encode_append("korvet:orders:0", batch, base, bits, LIMIT)
    except CodecError:
        return
    entries = stored(packed)
    sound = bytearray(batch)
    native.assign_offsets(sound, base, 7, None, None)
    offset, times, *rest = plain(native.to_columns(sound, LIMIT)).values()
    assert all(
        entry[0] == b"%d-%d" % (at >> bits, at & ((1 << bits) - 1))
        for entry, at in zip(entries, offset[1], strict=True)
    )

    def call(impl: ModuleType) -> Any:
        found, start = bytearray(), base
        while True:
            waiting = entries[start - base :][:size]
            more, start, seen, skipped = impl.decode_records(write_reply(waiting), bits, start, 70, compression, 7)
            if not seen:
                return impl.to_columns(found, LIMIT), start
            assert skipped == 0
            found += more

    kind, read = agree(call)
    assert kind == "value"
    assert list(read[1][0].values()) == [offset, times, *rest]
    assert read[1][1] == min(base + len(entries), LAST)


@given(
    st.lists(st.tuples(batches, st.integers(0, 3000), st.sampled_from([0, 0, 0, 1])), max_size=4),
    foreign(),
    bit_counts,
    starts,
    limits,
)
@examples(300)
def test_batches(
    made: list[tuple[bytes, int, int]], others: list[list[bytes]], bits: int, start: int, limit: int
) -> None:
    """Batches at the offsets of their ids, but for some, between other programs' entries."""
    entries = others
    for batch, base, off in made:
        stamped = bytearray(batch)
        native.assign_offsets(stamped, base, 1, None, None)
        shift = min(bits, 62)
        sequence = (base + off) & ((1 << shift) - 1) if bits else 1  # with no bits, ids are `<base offset>-1`
        entry_id = b"%d-%d" % ((base + off) >> shift, sequence)
        entries.append([entry_id, b"batch", bytes(stamped)])
    entries.sort(key=lambda entry: tuple(map(int, entry[0].split(b"-"))))
    agree(lambda impl: impl.decode_batches(write_reply(entries), bits, start, limit))


@given(st.one_of(damaged(foreign_replies), noise), st.integers(0, 64))
@examples(200)
def test_batches_of_anything(reply: bytes, bits: int) -> None:
    agree(lambda impl: impl.decode_batches(reply, bits, 0, LIMIT))


@given(st.one_of(objects, json_noise, damaged(objects)))
@examples(600)
def test_json_headers(text: bytes) -> None:
    """Through an entry, where the native reader can be reached; and each member as its own reader reads it."""
    reply = write_reply([[b"1-1", b"headers", text]])
    kind, page = agree(lambda impl: impl.decode_records(reply, 10, 0, LIMIT, 0, 0))
    assert kind == "value"
    found = plain(native.to_columns(page[1][0], LIMIT))
    members = read_members(text)
    assert found["header_offsets"][1][1] == (1 if members is None else len(members))


def three() -> list[list[bytes]]:
    """Entries that are batches of three, one and two records."""
    found = []
    for base, count in ((1, 3), (4, 1), (1500, 2)):
        none = {"value_offsets": bytes(4 * count + 4), "value": b"", "value_valid": bytes(count)}
        batch = reference.build_batch({"timestamp": bytes(8 * count), **none}, 0, base, -1, -1, -1)
        found.append([b"%d-%d" % (base >> 10, base & 1023), b"batch", bytes(batch)])
    return found


def test_batches_are_views_of_the_reply(impl: ModuleType) -> None:
    reply = bytearray(write_reply(three()))
    views, following, seen, skipped = impl.decode_batches(reply, 10, 3, LIMIT)
    assert [bytes(view) for view in views] == [entry[2] for entry in three()]
    assert all(view.obj is reply for view in views)
    assert (following, seen, skipped) == (1502, 3, 0)
    assert impl.decode_batches(reply, 10, 4, 0)[1:] == (5, 2, 0)


def test_an_entry_by_hand(impl: ModuleType) -> None:
    words = "1234567890123-5 key order-124 value {} timestamp 1234567891000 header.source web null.header.trace"
    reply = write_reply([[*map(str.encode, words.split()), b""]])
    batch, following, seen, skipped = impl.decode_records(reply, 10, 1264197519485952, 1 << 20, 0, 4)
    (head,) = impl.batch_headers(batch, True)
    assert (head.base_offset, head.count, head.leader_epoch) == (1264197519485957, 1, 4)
    assert (head.producer_id, head.log_append_time, head.first_timestamp) == (-1, False, 1234567891000)
    assert (following, seen, skipped) == (1264197519485958, 1, 0)
    found = plain(impl.to_columns(batch, LIMIT))
    assert bytes(found["key"][1]) == b"order-124"
    assert bytes(found["header_key"][1]) == b"sourcetrace"
    assert found["header_value_valid"][1] == [1, 0]


@pytest.mark.parametrize(
    ("fields", "time", "headers"),
    [
        (b"", 7, []),
        (b"timestamp 5", 5, []),
        (b"timestamp -5 timestamp 6", -5, [(b"timestamp", b"6")]),
        (b"timestamp soon timestamp 6", 6, [(b"timestamp", b"soon")]),
        (b"timestamp 9223372036854775808", 7, [(b"timestamp", b"9223372036854775808")]),
        (b"colour red", 7, [(b"colour", b"red")]),
        (b"key a key b", 7, [(b"key", b"b")]),
        (
            b'headers {"source":"web","version":1.0,"none":null}',
            7,
            [(b"source", b"web"), (b"version", b"1.0"), (b"none", None)],
        ),
        (b'headers {"a":"\\u00e9"} header.a b', 7, [(b"a", "é".encode()), (b"a", b"b")]),
        (b"headers [1] headers {}", 7, [(b"headers", b"[1]")]),
        (b"null.header.a b", 7, [(b"null.header.a", b"b")]),
    ],
)
def test_what_other_programs_write(impl: ModuleType, fields: bytes, time: int, headers: list[Any]) -> None:
    batch, *_ = impl.decode_records(write_reply([[b"7-0", *fields.split()]]), 10, 0, LIMIT, 0, 0)
    found = impl.to_columns(batch, LIMIT)
    ends = memoryview(found["header_key_offsets"]).tolist(), memoryview(found["header_value_offsets"]).tolist()
    valid = memoryview(found["header_value_valid"]).tolist()
    read = [
        (
            bytes(found["header_key"])[ends[0][at] : ends[0][at + 1]],
            bytes(found["header_value"])[ends[1][at] : ends[1][at + 1]] if valid[at] else None,
        )
        for at in range(len(valid))
    ]
    assert memoryview(found["timestamp"]).tolist() == [time]
    assert read == headers


def test_ids_that_are_no_offsets(impl: ModuleType) -> None:
    reply = write_reply([[entry_id, b"a", b"b"] for entry_id in (b"1-1023", b"1-1024", b"2-0", b"9007199254740992-0")])
    batch, following, seen, skipped = impl.decode_records(reply, 10, 0, LIMIT, 0, 0)
    assert memoryview(impl.to_columns(batch, LIMIT)["offset"]).tolist() == [2047, 2048]
    assert (following, seen, skipped) == (LAST, 4, 2)


@pytest.mark.parametrize("call", ["decode_records", "decode_batches"])
@pytest.mark.parametrize("reply", [b"", b"-ERR no\r\n", b"*-1\r\n", b"*0\r\n+OK\r\n", b"*1\r\n", b"*999999999\r\n"])
def test_what_is_no_range(impl: ModuleType, call: str, reply: bytes) -> None:
    with pytest.raises(CodecError, match="BAD_RESP"):
        getattr(impl, call)(reply, 10, 0, LIMIT, *([0, 0] if call == "decode_records" else []))
