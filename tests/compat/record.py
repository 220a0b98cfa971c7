"""The records that every client in this folder sends and brings back."""

from typing import Any, NamedTuple

from compat.drivers import pack, unpack

COMPRESSIONS = ("none", "gzip", "snappy", "lz4", "zstd")


class Record(NamedTuple):
    """A record as a client sees it; `headers` in order, duplicates allowed."""

    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()


def write_row(record: Record) -> dict[str, Any]:
    """As drivers take it."""
    headers = [[name, pack(value)] for name, value in record.headers]
    return {"key": pack(record.key), "value": pack(record.value), "headers": headers}


def read_row(row: dict[str, Any]) -> Record:
    """As drivers give it."""
    headers = tuple((name, unpack(value)) for name, value in row["headers"])
    return Record(unpack(row["key"]), unpack(row["value"]), headers)


# One record of each form that has broken somebody: plain, null key, tombstone, empty but not null, non-text bytes,
# headers in order with a duplicate and a null value, a value larger than a page.
FORMS = [
    Record(b"key", b"value"),
    Record(None, b"no key"),
    Record(b"gone", None),
    Record(b"", b""),
    Record(bytes(range(256)), bytes(reversed(range(256)))),
    Record(b"headed", b"v", (("source", b"web"), ("source", b"again"), ("empty", b""), ("null", None))),
    Record(b"large", bytes(70_000)),
]

# kcat's input is text in lines cut by separators, and its -Z makes every empty value null.
TEXT_FORMS = [
    Record(b"key", b"value"),
    Record(None, b"no key"),
    Record(b"gone", None),
    Record(b"headed", b"v", (("source", b"web"), ("source", b"again"))),
    Record(b"large", b"x" * 70_000),
]

# kafka-python and KafkaJS refuse to send a null header value (they read them).
BYTE_HEADERS = [r._replace(headers=tuple(h for h in r.headers if h[1] is not None)) for r in FORMS]
