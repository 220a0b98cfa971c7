"""The calls that are measured, each on `count` records or whatever it works on, prepared beforehand."""

import struct
import zlib
from array import array
from collections.abc import Callable, Iterable
from typing import Any

import korvet_fast._native as native
from korvet_fast.wire.kafka.shapes.produce import PRODUCE

LIMIT = 1 << 30
PIECE = 64 * 1024  # bytes of a batch in a log of 0.7
ELEMENTS = 1 << 20
VALUE = b"0123456789abcdef" * 6 + b"0123"  # 100 bytes
VERSION = 9
BITS = 10  # of a stream id's sequence
OLD = 1 << 30  # a time in stream ids, in ms
ROW = ["key", "value", "topic", "partition", "offset", "timestamp", "timestampType"]  # as Spark reads Kafka
ONLY_RUST = frozenset({"match_names"})  # Python's own expressions backtrack: they are no twin

Call = Callable[[Any], Callable[[], object]]  # an implementation to what is timed


def prepare(count: int) -> dict[str, Call]:
    """Each call by name, for `count` records; frames, partitions, replies and commands count as records."""
    columns = _columns(count)
    batch = bytes(native.build_batch(columns, 0, 0, -1, -1, -1))
    batch_of_values = bytes(native.build_batch(columns | {"key_valid": bytes(count)}, 0, 0, -1, -1, -1))
    lz4 = _compressed(batch)
    small = bytes(native.build_batch(_columns(1), 0, 0, -1, -1, -1))
    log = b"".join(_placed(small, offset) for offset in range(count))
    frames = (len(small).to_bytes(4, "big") + small) * count
    request = {
        "api_key": 0,
        "api_version": VERSION,
        "acks": 1,
        "topic_data": [
            {"name": "orders", "partition_data": [{"index": index, "records": small} for index in range(count)]}
        ],
    }
    encoded = PRODUCE.request.encode(request, VERSION)
    legacy = bytes(native.to_messages(batch_of_values, LIMIT)[0])
    messages = (struct.pack(">ibbI", len(VALUE) + 6, 1, 0, zlib.crc32(VALUE)) + VALUE) * count
    commands = [["XADD", "korvet:orders:0", f"{place}-0", "value", VALUE] for place in range(count)]
    replies = b"".join(b"*2\r\n$3\r\n1-0\r\n*2\r\n$5\r\nvalue\r\n$100\r\n%b\r\n" % VALUE for _ in range(count))
    stored = _range((f"{OLD + place}-0", (b"value", VALUE, b"timestamp", b"1700000000000")) for place in range(count))
    whole = _range((_id(offset + 1), (b"batch", _placed(small, offset + 1))) for offset in range(count))
    names = [f"orders-{place}" for place in range(count)]
    lines = b"".join(b"V1|%d|PRODUCE|orders key:%b\n" % (place, VALUE) for place in range(count))
    rows = [(small, place, place, 0) for place in range(count)]
    around = ("guard", "close"), ("korvet:orders:0", "state"), ("token", b"0"), b"9", (LIMIT, count, OLD)
    stamped = bytearray(batch)
    last = 1_700_000_000_000 + count - 1
    return {
        "Frames.feed": lambda impl: lambda: impl.Frames(LIMIT).feed(frames),
        "Schema.decode": _with_schema(lambda schema: lambda: schema.decode(encoded, VERSION, ELEMENTS)),
        "Schema.encode": _with_schema(lambda schema: lambda: schema.encode(request, VERSION)),
        "Schema.frame": _with_schema(lambda schema: lambda: schema.frame(request, VERSION)),
        "validate_batch": lambda impl: lambda: impl.validate_batch(batch, LIMIT),
        "validate_batch (lz4)": lambda impl: lambda: impl.validate_batch(lz4, LIMIT),
        "batch_headers": lambda impl: lambda: impl.batch_headers(log, False),
        "batch_headers (verify)": lambda impl: lambda: impl.batch_headers(log, True),
        "slice_batches": lambda impl: lambda: impl.slice_batches(log, count // 2, count, LIMIT),
        "assign_offsets": lambda impl: lambda: impl.assign_offsets(stamped, 5, 0, None, None),
        "recompress (from lz4)": lambda impl: lambda: impl.recompress(lz4, 0, LIMIT),
        "find_time": lambda impl: lambda: impl.find_time(batch, last, LIMIT),
        "to_columns": lambda impl: lambda: impl.to_columns(batch, LIMIT),
        "to_arrow": lambda impl: lambda: impl.to_arrow(batch, "orders", 0, ROW, 0, count, LIMIT, LIMIT, LIMIT),
        "build_batch": lambda impl: lambda: impl.build_batch(columns, 0, 0, -1, -1, -1),
        "ArrowRecords.batches": _with_rows(batch, count),
        **_of_column_rows(count),
        "up_convert (0.7)": lambda impl: lambda: impl.up_convert(messages, LIMIT, LIMIT, PIECE),
        "down_convert (0.7)": lambda impl: lambda: impl.down_convert(bytearray(legacy), 0, LIMIT),
        "whole_messages": lambda impl: lambda: impl.whole_messages(messages),
        "to_messages": lambda impl: lambda: impl.to_messages(batch_of_values, LIMIT),
        "to_values": lambda impl: lambda: impl.to_values(legacy, 0, LIMIT, LIMIT),
        "Lines.feed": lambda impl: lambda: impl.Lines(LIMIT).feed(lines),
        "ProduceRun.build": lambda impl: lambda: impl.ProduceRun(lines).build([(3, 0, LIMIT)], OLD),
        "write_messages": lambda impl: lambda: impl.write_messages(log, 0, count, 0, count, LIMIT, LIMIT, LIMIT),
        "encode_append": lambda impl: lambda: impl.encode_append("korvet:orders:0", batch, OLD << BITS, BITS, LIMIT),
        "encode_append_batches": lambda impl: lambda: impl.encode_append_batches(*around, rows, 0),
        "decode_records": lambda impl: lambda: impl.decode_records(stored, BITS, 0, LIMIT, 0, 0),
        "decode_batches": lambda impl: lambda: impl.decode_batches(whole, BITS, 0, LIMIT),
        "match_names": lambda impl: lambda: impl.match_names("orders-[0-9]*5", names),
        "encode_commands": lambda impl: lambda: impl.encode_commands(commands),
        "encode_command_parts": lambda impl: lambda: impl.encode_command_parts(commands),
        "parse_reply": lambda impl: lambda: impl.parse_reply(stored),
        "parse_replies": lambda impl: lambda: impl.parse_replies(replies),
        "Replies.feed": lambda impl: lambda: impl.Replies(LIMIT).feed(replies),
    }


def _with_schema(make: Callable[[Any], Callable[[], object]]) -> Call:
    """The schema is compiled before anything is timed, as it is once per process."""
    return lambda impl: make(impl.Schema(*PRODUCE.request_shape))


def _with_rows(batch: bytes, count: int) -> Call:
    """Rows of Arrow, or for the reference the same as lists, to two partitions by their keys."""

    def make(impl: Any) -> Callable[[], object]:
        rows: Any = {"key": [b"%08d" % place for place in range(count)], "value": [VALUE] * count}
        if impl is native:
            rows = native.to_arrow(batch, "orders", 0, list(rows), 0, count, LIMIT, LIMIT, LIMIT)
        return lambda: impl.ArrowRecords(rows, "orders").batches(
            {"orders": [0, 0]}, 0, 0, LIMIT, LIMIT, -1, -1, 1 << 40
        )

    return make


def _of_column_rows(count: int) -> dict[str, Call]:
    """A producer's messages one by one, and its columns: read, cut into runs; runs as batches; where rows went."""
    keys, values = [b"%08d" % place for place in range(count)], [VALUE] * count
    times = array("q", [1 << 40]) * count

    def read(impl: Any) -> Any:
        rows = impl.ColumnRows(keys, values)
        return rows.runs(rows.choose(2), LIMIT, count)

    def build(impl: Any) -> Callable[[], object]:
        runs = read(impl)
        return lambda: [run.build(1 << 40, 0, -1, -1, -1) for run in runs]

    def places(impl: Any) -> Callable[[], object]:
        ended = [(run, run.partition, 0) for run in read(impl)]
        return lambda: impl.row_places(ended, count)

    def add(impl: Any) -> Callable[[], object]:
        def work() -> object:
            run = impl.MessageCells(values[0], keys[0], (), 0, times[0])
            run.grant(LIMIT, count)
            for key, value in zip(keys[1:], values[1:], strict=True):
                run.add(value, key, ())
            return run

        return work

    def build_cells(impl: Any) -> Callable[[], object]:
        run = impl.MessageCells(values[0], keys[0], (), 0, times[0])
        run.grant(LIMIT, count)
        for key, value, stamp in zip(keys[1:], values[1:], times[1:], strict=True):
            run.add(value, key, (), 0, stamp)
        return lambda: run.build(0, -1, -1, -1)

    return {
        "MessageCells.add": add,
        "MessageCells.build": build_cells,
        "ColumnRows.runs": lambda impl: lambda: read(impl),
        "RowRun.build": build,
        "build_rows": lambda impl: lambda: impl.build_rows(keys, values, times, 0, -1, -1, -1),
        "row_places": places,
    }


def _columns(count: int) -> dict[str, Any]:
    """Records of 100 bytes with a key of 8 digits, a millisecond apart."""
    times = array("q", range(1_700_000_000_000, 1_700_000_000_000 + count))
    keys = b"".join(b"%08d" % place for place in range(count))
    return {
        "timestamp": times,
        "key_offsets": array("i", range(0, 8 * count + 1, 8)),
        "key": keys,
        "key_valid": b"\1" * count,
        "value_offsets": array("i", range(0, 100 * count + 1, 100)),
        "value": VALUE * count,
        "value_valid": b"\1" * count,
    }


def _range(found: Iterable[tuple[str, tuple[bytes, ...]]]) -> bytes:
    """A reply to XRANGE: entries of an id and fields."""
    entries = [b"*2\r\n" + _bulk(number.encode()) + _array(list(map(_bulk, fields))) for number, fields in found]
    return _array(entries)


def _array(parts: list[bytes]) -> bytes:
    return b"*%d\r\n%b" % (len(parts), b"".join(parts))


def _bulk(data: bytes) -> bytes:
    return b"$%d\r\n%b\r\n" % (len(data), data)


def _id(offset: int) -> str:
    return f"{offset >> BITS}-{offset & (1 << BITS) - 1}"


def _compressed(batch: bytes) -> bytes:
    return bytes(native.recompress(batch, 3, LIMIT))


def _placed(batch: bytes, offset: int) -> bytes:
    stamped = bytearray(batch)
    native.assign_offsets(stamped, offset, 0, None, None)
    return bytes(stamped)
