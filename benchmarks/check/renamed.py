"""The names that native calls had in earlier commits, whose own benchmarks call their rows so."""

import re
from collections.abc import Iterable
from typing import Final

RENAMED: Final = {
    "admit": "validate_batch",
    "restamp": "assign_offsets",
    "lift": "up_convert",
    "lower": "down_convert",
    "span": "slice_batches",
    "headers": "batch_headers",
    "entries": "decode_records",
    "blobs": "decode_batches",
    "pack": "encode_commands",
    "pack_parts": "encode_command_parts",
    "pack_append": "encode_append",
    "reply": "parse_reply",
    "replies": "parse_replies",
    "columns": "to_columns",
    "assemble": "build_batch",
    "Rows.batches": "ArrowRecords.batches",
}
_CALL = re.compile(r"[\w.]*")  # in front of `, 100` and ` (lz4)`


def today(name: str) -> str:
    """The name that this row has now."""
    return _CALL.sub(lambda call: RENAMED.get(call[0], call[0]), name, count=1)


def with_earlier(words: Iterable[str]) -> list[str]:
    """The words, and those that find the same rows under their earlier names."""
    found = []
    for word in words:
        call = _CALL.match(word)[0].lower()  # type: ignore[index]  # it fits everything
        rest = word[len(call) :]
        found += [word, *(before + rest for before, now in RENAMED.items() if call and call in now.lower())]
    return found
