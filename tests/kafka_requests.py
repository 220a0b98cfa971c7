"""Requests of every API and version served, made from the shapes' own tables."""

from typing import Any

from kafka_messages import CATALOG
from kafka_server import PRODUCE, make_batch
from korvet_fast.wire.kafka.routes import ROUTES
from korvet_fast.wire.kafka.shapes.field import Field

EVERY = [(key, version) for key, route in ROUTES.items() for version in range(route.lowest, route.highest + 1)]


def fill(fields: tuple[Field, ...], version: int, text: str = "text", rows: int = 2) -> dict[str, Any]:
    """Values for every field of a version: none is its default. `text`: what every string says."""
    simple: dict[str, Any] = {
        "bool": True,
        "int8": 1,
        "int16": 2,
        "uint16": 3,
        "int32": 4,
        "uint32": 5,
        "int64": 6,
        "float64": 1.5,
        "string": text,
        "legacy_string": "old text",
        "bytes": b"bytes",
        "uuid": bytes(range(16)),
        "records": memoryview(b"records"),
    }
    values: dict[str, Any] = {}
    for field in fields:
        if not field.since <= version <= field.until or field.kind == "tags":
            continue
        if field.kind == "{}":
            values[field.name] = fill(field.fields, version, text, rows)
        elif field.kind == "[]":
            values[field.name] = [fill(field.fields, version, text, rows)] * rows
        elif field.kind.startswith("[]"):
            values[field.name] = [simple[field.kind[2:]]] * rows
        else:
            values[field.name] = simple[field.kind]
    return values


def request_of(key: int, version: int, text: str = "text", rows: int = 2) -> bytes:
    """A request with something in every field."""
    message = CATALOG[key]
    values = fill(message.request_shape.fields, version, text, rows)
    values |= {"api_key": key, "api_version": version, "correlation_id": 77}
    if key == PRODUCE:
        values["topic_data"][0]["partition_data"][0]["records"] = bytes(make_batch(b"x"))
    return message.request.encode(values, version)
