"""Golden bytes: what named clients really sent to a named broker, and what that answered. `record.py` makes them."""

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

HERE = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class Vector:
    """One exchange. Frames without their length prefix."""

    client: str  # with its version
    broker: str  # with its version
    scenario: str
    api_key: int
    api_version: int
    request: bytes
    response: bytes | None  # None where none came (acks=0), and for DescribeLogDirs

    def __str__(self) -> str:
        return f"{self.client} to {self.broker}: {self.scenario}, api {self.api_key} v{self.api_version}"


def load() -> list[Vector]:
    """All of them."""
    return [
        Vector(**{**row, "request": bytes.fromhex(row["request"]), "response": _from_hex(row["response"])})
        for file in sorted(HERE.glob("*.json"))
        for row in json.loads(file.read_text())
    ]


def save(name: str, vectors: Iterable[Vector]) -> None:
    """Write them to the file of that name, a line each, so that changes can be read."""
    ordered = sorted(vectors, key=lambda vector: (vector.api_key, vector.api_version, vector.scenario))
    rows = [
        json.dumps({**asdict(v), "request": v.request.hex(), "response": v.response.hex() if v.response else None})
        for v in ordered
    ]
    (HERE / f"{name}.json").write_text("[\n" + ",\n".join(rows) + "\n]\n")


def _from_hex(text: str | None) -> bytes | None:
    return None if text is None else bytes.fromhex(text)
