"""Message shapes by version: a table of fields, walked in both directions."""

from collections.abc import Mapping, Sequence
from typing import Any, final

from korvet_fast.errors import CodecError
from korvet_reference.decoding import Decoder
from korvet_reference.encoding import LONGEST, Encoder
from korvet_reference.reader import Reader
from korvet_reference.table import NEVER, check_elements, read_table
from korvet_reference.varint import Bytes

LEND_FROM = 4096


@final
class Schema:
    """A message in the versions `lowest` to `highest`, flexible (KIP-482) from `flexible` on. Raises BAD_SCHEMA."""

    def __init__(self, name: str, fields: Sequence[tuple[Any, ...]], lowest: int, highest: int, flexible: int) -> None:
        if not 0 <= lowest <= highest < NEVER:
            raise CodecError("BAD_SCHEMA", f"{name}: no such range of versions")
        self.name = name
        self._rows = read_table(fields)
        self._versions = range(lowest, highest + 1)
        self._flexible = flexible
        for version in self._versions:
            check_elements(self._rows, version, version >= flexible)

    def decode(self, data: Bytes, version: int, limit: int) -> dict[str, Any]:
        """The values of a message: every field of the table, whatever the version. All of `data` must be used.

        `limit`: array elements and unknown tagged fields in all. Records are views of `data`. Unknown tagged fields are
        kept as `values["_tagged"] = {tag: bytes}`. Raises UNSUPPORTED_VERSION, TRUNCATED, TRAILING_BYTES,
        NEGATIVE_LENGTH, VARINT_OVERFLOW, BAD_UTF8, UNEXPECTED_NULL, COUNT_EXCEEDS_INPUT, TOO_MANY_ELEMENTS,
        DUPLICATE_TAG.
        """
        self._check_version(version)
        return Decoder(Reader(data), version, version >= self._flexible, limit).message(self._rows)

    def encode(self, values: Mapping[str, Any], version: int) -> bytes:
        """The bytes of a message; what is missing becomes its default. Raises UNSUPPORTED_VERSION, BAD_VALUE."""
        return b"".join(self._write(values, version, LONGEST))

    def frame(self, values: Mapping[str, Any], version: int) -> list[Bytes]:
        """As `encode`, behind a 32-bit length, in parts: records of 4 KiB and more are the very objects given."""
        # Records stand behind their own length, so the first part is never theirs.
        first, *parts = self._write(values, version, LEND_FROM) or [b""]
        size = len(first) + sum(memoryview(part).nbytes for part in parts)
        if size >= 1 << 31:
            raise CodecError("OUT_OF_RANGE", f"a frame of {size} bytes")
        return [size.to_bytes(4, "big") + first, *parts]

    def _check_version(self, version: int) -> None:
        if version not in self._versions:
            raise CodecError("UNSUPPORTED_VERSION", f"{self.name} v{version}")

    def _write(self, values: Mapping[str, Any], version: int, lend_from: int) -> list[Bytes]:
        self._check_version(version)
        encoder = Encoder(version, version >= self._flexible, lend_from)
        encoder.struct(self._rows, values, f"{self.name} v{version}")
        return encoder.parts
