"""One row of a message shape. A shape is data: a tuple of these, compiled once by `_native.Schema`.

Source of every table in this folder: Kafka's message definitions (clients/src/main/resources/common/message) and
https://kafka.apache.org/protocol. In versions without a field it decodes to its default, so handlers need no version
checks.
"""

from typing import NamedTuple

NEVER = 32767  # a version no message reaches


class Field(NamedTuple):
    """A field and the versions it lives in.

    `kind`: bool int8 int16 uint16 int32 uint32 int64 float64 uuid string bytes records; `[]` and a kind for an array
    of it (`[]int32`); `[]` alone for an array of structs and `{}` for one struct (their rows in `fields`);
    `legacy_string` is never compact (client_id in headers); `tags` is a bare section of tagged fields (headers).
    In Python: int, bool, float, str, bytes (uuid: 16 of them), memoryview (records), list, dict. Where many structs are
    written, each may be a tuple of its first fields instead, in the order of the rows.

    `since`..`until`: versions it is in, both included. `nullable`: first version where null is legal.
    `default`: value when absent from the version or from the given values; None only where nullable, otherwise
    the kind's zero. `tag`: its number if it is a tagged field, else -1.
    """

    name: str
    kind: str
    since: int = 0
    until: int = NEVER
    nullable: int = NEVER
    default: object = ...
    tag: int = -1
    fields: "tuple[Field, ...]" = ()
