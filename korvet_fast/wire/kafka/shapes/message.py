"""A request and its response as shapes, headers included, so that one native call reads or writes a whole frame."""

from typing import Final, NamedTuple

from korvet_fast._native import Schema
from korvet_fast.wire.kafka.shapes.field import NEVER, Field

API_VERSIONS: Final = 18  # the one key whose response header never changes


class Shape(NamedTuple):
    """The source that `Schema(*shape)` is compiled from: the raw rows, and the versions they hold for."""

    name: str
    fields: tuple[Field, ...]
    lowest: int
    highest: int
    flexible: int  # first version with compact lengths and tagged fields


class Message(NamedTuple):
    """One API of Kafka. Versions `lowest`..`highest` can be read and written; the routes decide which are served."""

    name: str
    key: int
    lowest: int
    highest: int
    flexible: int
    request: Schema
    response: Schema
    request_shape: Shape
    response_shape: Shape


def request_header(flexible: int) -> tuple[Field, ...]:
    """Request header 1, and 2 from the first flexible version on; the client id keeps its two-byte length in both.

    Source: RequestHeader.json and KIP-482.
    """
    return (
        Field("api_key", "int16"),
        Field("api_version", "int16"),
        Field("correlation_id", "int32"),
        Field("client_id", "legacy_string", nullable=0, default=None),
        Field("tags", "tags", flexible),
    )


def response_header(key: int, flexible: int) -> tuple[Field, ...]:
    """Response header 0, and 1 from the first flexible version on.

    ApiVersions answers with header 0 always: its reader does not know yet which versions are spoken (KIP-511).
    """
    return (
        Field("correlation_id", "int32"),
        Field("tags", "tags", NEVER if key == API_VERSIONS else flexible),
    )


def message(
    name: str,
    key: int,
    versions: tuple[int, int],
    flexible: int,
    request: tuple[Field, ...],
    response: tuple[Field, ...],
) -> Message:
    """Compile the body tables of an API, each behind its header. `versions`: lowest and highest, both included."""
    asked = Shape(f"{name}Request", request_header(flexible) + request, *versions, flexible)
    answered = Shape(f"{name}Response", response_header(key, flexible) + response, *versions, flexible)
    return Message(name, key, *versions, flexible, Schema(*asked), Schema(*answered), asked, answered)
