"""Our message tables against Kafka's own definitions: every field, every version.

They are taken from kafka-python, and those that it does not carry from Kafka's jars.
"""

import json
import re
import zipfile
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from benchmarks.peers.kafka import jars
from benchmarks.peers.process import PeerError
from kafka_messages import CATALOG
from korvet_fast.wire.kafka.shapes.field import NEVER, Field
from korvet_fast.wire.kafka.shapes.message import Message, request_header, response_header
from requirement import missing

SIDES = [(message, side) for message in CATALOG.values() for side in ("Request", "Response")]
ZEROS = {
    "bool": False,
    "string": "",
    "float64": 0.0,
    "uuid": bytes(16),
    "bytes": b"",
    "records": b"",
    "[]": [],
    "{}": {},
}

# Where we stand in with null although Kafka's definition names no default: "no message", "no records", "no id".
NULL_BY_CHOICE = {"error_message", "records", "transactional_id", "documentation"}


def definition_of(name: str) -> dict[str, Any]:
    """Kafka's definition of a message, without its comments. Read as a file: kafka-python itself is not imported."""
    spec = find_spec("kafka")
    assert spec is not None
    assert spec.origin is not None
    path = Path(spec.origin).parent / "protocol" / "schemas" / "resources" / f"{name}.json"
    text = path.read_text() if path.exists() else read_jar(f"common/message/{name}.json")
    definition: dict[str, Any] = json.loads(re.sub(r"(?m)^\s*//.*$", "", text))
    common = {row["name"]: row["fields"] for row in definition.get("commonStructs", ())}
    put_in(definition["fields"], common)
    return definition


def read_jar(path: str) -> str:
    """A file from the jar of Kafka's clients."""
    try:
        (found,) = Path(jars.classpath()).parent.glob("kafka-clients-*.jar")
    except PeerError as error:
        missing(str(error))
        raise
    with zipfile.ZipFile(found) as jar:
        return jar.read(path).decode()


def put_in(rows: list[dict[str, Any]], common: dict[str, list[dict[str, Any]]]) -> None:
    """Write the fields of structs that are defined once where they are used."""
    for row in rows:
        if (shared := common.get(row["type"].removeprefix("[]"))) is not None:
            row["fields"] = shared
        put_in(row.get("fields", []), common)


def snake(name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


def versions(text: str | None) -> tuple[int, int]:
    if not text or text == "none":
        return (NEVER, NEVER)
    low, _, high = text.rstrip("+").partition("-")
    return (int(low), NEVER if text.endswith("+") else int(high or low))


def zero(kind: str) -> Any:
    return [] if kind.startswith("[]") else ZEROS.get(kind, 0)


def of_kafka(row: dict[str, Any], version: int) -> tuple[Any, ...] | None:
    """A field of a version by Kafka's definition; None if the version does not have the field."""
    low, high = versions(row["versions"])
    if not low <= version <= high:
        return None
    element = row["type"].removeprefix("[]")
    struct = element[0].isupper()
    kind = ("[]" if row["type"].startswith("[]") else "{}") if struct else row["type"]
    default: Any = row.get("default", zero(kind))
    if default == "null":
        default = None
    elif isinstance(default, str) and kind != "string":
        default = default == "true" if kind == "bool" else int(default, 0)
    nullable = version >= versions(row.get("nullableVersions"))[0]
    tag = row["tag"] if version >= versions(row.get("taggedVersions"))[0] else -1
    return snake(row["name"]), kind, nullable, default, tag


def of_ours(row: Field, version: int) -> tuple[Any, ...] | None:
    if not row.since <= version <= row.until:
        return None
    default = zero(row.kind) if row.default is ... else row.default
    return row.name, row.kind, version >= row.nullable, default, row.tag


def differences(ours: tuple[Field, ...], kafkas: list[dict[str, Any]], version: int, path: str) -> Iterator[str]:
    left = [(said, row) for row in ours if (said := of_ours(row, version))]
    right = [(said, row) for row in kafkas if (said := of_kafka(row, version))]
    if [said[0] for said, _ in left] != [said[0] for said, _ in right]:
        yield f"{path} v{version}: {[said[0] for said, _ in left]} != {[said[0] for said, _ in right]}"
        return
    for (mine, row), (theirs, definition) in zip(left, right, strict=True):
        if mine[0] in NULL_BY_CHOICE and mine[2] and mine[3] is None:
            theirs = (*theirs[:3], None, theirs[4])
        if mine != theirs:
            yield f"{path} v{version}: {mine} != {theirs}"
        if row.fields or "fields" in definition:
            yield from differences(row.fields, definition.get("fields", []), version, f"{path}.{row.name}")


@pytest.mark.parametrize(("message", "side"), SIDES, ids=lambda value: getattr(value, "name", value))
def test_every_row_says_what_kafka_says(message: Message, side: str) -> None:
    definition = definition_of(f"{message.name}{side}")
    assert definition["apiKey"] == message.key
    assert versions(definition["flexibleVersions"])[0] == message.flexible
    shape = message.request_shape if side == "Request" else message.response_shape
    header = request_header(message.flexible) if side == "Request" else response_header(message.key, message.flexible)
    assert shape.fields[: len(header)] == header
    body = shape.fields[len(header) :]
    found = [
        line
        for version in range(message.lowest, message.highest + 1)
        for line in differences(body, definition["fields"], version, message.name)
    ]
    assert found == []


def test_the_header_of_an_api_versions_answer_never_has_tags() -> None:
    assert response_header(18, 3)[1].since == NEVER
    assert response_header(3, 9)[1].since == 9
