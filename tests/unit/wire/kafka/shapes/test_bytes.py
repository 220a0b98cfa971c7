"""Our shapes against kafka-python's encoders: for every API, version and side, the same values give the same bytes."""

import uuid
import warnings
from functools import cache
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kafka_messages import CATALOG
from korvet_fast.errors import CodecError
from korvet_fast.wire.kafka.shapes.field import Field
from korvet_fast.wire.kafka.shapes.message import Message

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # it reads its definitions in a way that is going away
    import kafka.protocol.admin
    import kafka.protocol.consumer
    import kafka.protocol.metadata
    import kafka.protocol.producer
    import kafka.protocol.sasl

FOLDERS = (
    *(kafka.protocol.admin, kafka.protocol.consumer, kafka.protocol.metadata, kafka.protocol.producer),
    kafka.protocol.sasl,
)
# kafka-python has no consumer protocol. Its definitions are compared with Kafka's, and clients that have it are tested.
UNKNOWN = {"ConsumerGroupHeartbeat", "ConsumerGroupDescribe"}
CASES = [
    pytest.param(message.key, version, side, id=f"{message.name}-{side}-{version}")
    for message in CATALOG.values()
    if message.name not in UNKNOWN
    for version in range(message.lowest, message.highest + 1)
    for side in ("Request", "Response")
]
WIDTHS = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}


def foreign(message: Message, side: str) -> Any:
    name = f"{message.name}{side}"
    return next(getattr(folder, name) for folder in FOLDERS if hasattr(folder, name))


def kind_values(kind: str) -> st.SearchStrategy[Any]:
    if kind.startswith("[]"):
        return st.lists(kind_values(kind[2:]), max_size=3)
    if kind == "uint16":
        return st.integers(0, 2**16 - 1)
    if kind == "float64":
        return st.floats(allow_nan=False)
    if kind in WIDTHS:
        bound = 2 ** (WIDTHS[kind] - 1)
        return st.integers(-bound, bound - 1)
    if kind == "bool":
        return st.booleans()
    if kind == "uuid":
        return st.binary(min_size=16, max_size=16)
    if kind in ("records", "bytes"):
        return st.binary(max_size=200)
    assert kind in ("string", "legacy_string"), kind
    return st.text(max_size=20)


def is_bit_field(row: Field) -> bool:
    return row.kind == "int32" and row.name.endswith("authorized_operations")


def field_values(row: Field, version: int) -> st.SearchStrategy[Any]:
    if row.kind == "{}":
        values = struct_values(row.fields, version)
    elif row.kind == "[]":
        values = st.lists(struct_values(row.fields, version), max_size=3)
    elif is_bit_field(row):
        # kafka-python reads these as sets of bits, of which it knows the first 31.
        values = st.sampled_from((-(2**31), 0, 1, 0x70F8))
    else:
        values = kind_values(row.kind)
    return st.none() | values if version >= row.nullable else values


def struct_values(rows: tuple[Field, ...], version: int) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(
        {row.name: field_values(row, version) for row in rows if row.since <= version <= row.until}
    )


@cache
def bodies(key: int, version: int, side: str) -> st.SearchStrategy[dict[str, Any]]:
    return struct_values(body_rows(key, side), version)


def body_rows(key: int, side: str) -> tuple[Field, ...]:
    """The rows behind the header."""
    message = CATALOG[key]
    return message.request_shape.fields[5:] if side == "Request" else message.response_shape.fields[2:]


def default_of(row: Field, version: int) -> Any:
    """The decoded value of a field that is not sent: its default, or its kind's zero."""
    if row.default is not ...:
        return row.default
    if row.kind.startswith("[]"):
        return []
    if row.kind == "{}":
        return {inner.name: default_of(inner, version) for inner in row.fields}
    return {"bool": False, "string": "", "uuid": bytes(16), "records": b"", "bytes": b""}.get(row.kind, 0)


def completed(values: dict[str, Any], rows: tuple[Field, ...], version: int) -> dict[str, Any]:
    """The values as a decoder gives them: fields of other versions at their defaults."""
    full = {}
    for row in rows:
        value = values.get(row.name, default_of(row, version))
        if row.kind == "[]" and value is not None:
            value = [completed(item, row.fields, version) for item in value]
        elif row.kind == "{}" and value is not None:
            value = completed(value, row.fields, version)
        full[row.name] = value
    return full


def owned(decoded: Any) -> Any:
    """Views turned into bytes, so that they compare."""
    if isinstance(decoded, dict):
        return {key: owned(value) for key, value in decoded.items()}
    if isinstance(decoded, list):
        return [owned(value) for value in decoded]
    return bytes(decoded) if isinstance(decoded, memoryview) else decoded


def handed_over(values: dict[str, Any], rows: tuple[Field, ...], struct: Any, version: int) -> dict[str, Any]:
    """Our values as kafka-python's classes want them: objects, UUIDs, sets of bits, no tag at its default."""
    given_over: dict[str, Any] = {}
    for row in rows:
        if row.name not in values:
            continue
        # kafka-python calls both of them so, and reads them as sets, but in DescribeTopicPartitions.
        as_bits = is_bit_field(row) and "authorized_operations" in struct.fields
        name = "authorized_operations" if as_bits else row.name
        value, field = values[row.name], struct.fields[name]
        if row.tag >= 0 and completed({row.name: value}, (row,), version)[row.name] == default_of(row, version):
            continue
        if row.kind in ("[]", "{}") and value is not None:
            items = [
                field.data_class(version=version, **handed_over(item, row.fields, field, version))
                for item in (value if row.kind == "[]" else [value])
            ]
            value = items if row.kind == "[]" else items[0]
        elif row.kind == "uuid":
            value = uuid.UUID(bytes=value)
        elif as_bits:
            value = {31} if value == -(2**31) else {bit for bit in range(31) if value >> bit & 1}
        given_over[name] = value
    return given_over


@pytest.mark.parametrize(("key", "version", "side"), CASES)
@settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_both_write_the_same_bytes(key: int, version: int, side: str, data: st.DataObject) -> None:
    message, request = CATALOG[key], side == "Request"
    schema = message.request if request else message.response
    rows = body_rows(key, side)
    body = data.draw(bodies(key, version, side))
    correlation = data.draw(st.integers(-(2**31), 2**31 - 1))
    client = data.draw(st.none() | st.text(max_size=10))

    header: dict[str, Any] = {"correlation_id": correlation}
    if request:
        header |= {"api_key": message.key, "api_version": version, "client_id": client}
    ours = schema.encode(header | body, version)

    other_class = foreign(message, side)
    other = other_class(version=version, **handed_over(body, rows, other_class._struct, version))
    if request:
        other.with_header(correlation_id=correlation, client_id=client)
    else:
        other.with_header(correlation_id=correlation)
    assert ours == other.encode(header=True)

    assert owned(schema.decode(ours, version, 10_000)) == header | {"tags": {}} | completed(body, rows, version)
    assert b"".join(schema.frame(header | body, version)) == len(ours).to_bytes(4, "big") + ours


@pytest.mark.parametrize(("key", "version", "side"), CASES)
def test_every_shorter_piece_is_refused(key: int, version: int, side: str) -> None:
    message = CATALOG[key]
    schema = message.request if side == "Request" else message.response
    header = {"api_key": message.key, "api_version": version} if side == "Request" else {}
    whole = schema.encode(header | {"correlation_id": 7}, version)
    for size in range(len(whole)):
        with pytest.raises(CodecError):
            schema.decode(whole[:size], version, 10_000)
