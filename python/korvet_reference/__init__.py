"""The native codec's contract once more, in plain Python: the oracle of tests, and the first column of benchmarks.

Written to be read, not to be fast. `korvet_fast/_native.pyi` is the contract; both raise `CodecError` with the same
codes.
"""

from korvet_reference.arrow import ArrowPage, to_arrow
from korvet_reference.batch import admit, check, find_time, headers, recompress, restamp, span
from korvet_reference.columns import Column, assemble, columns
from korvet_reference.frames import Frames
from korvet_reference.header import Batch
from korvet_reference.ids import pack_ids, unpack_ids
from korvet_reference.legacy import lift, lower
from korvet_reference.page import blobs, entries
from korvet_reference.resp import Replies, ReplyError, pack, pack_parts, replies, reply
from korvet_reference.rows import Rows
from korvet_reference.schema import Schema
from korvet_reference.stream import pack_append

__all__ = [
    "ArrowPage",
    "Batch",
    "Column",
    "Frames",
    "Replies",
    "ReplyError",
    "Rows",
    "Schema",
    "admit",
    "assemble",
    "blobs",
    "check",
    "columns",
    "entries",
    "find_time",
    "headers",
    "lift",
    "lower",
    "pack",
    "pack_append",
    "pack_ids",
    "pack_parts",
    "recompress",
    "replies",
    "reply",
    "restamp",
    "span",
    "to_arrow",
    "unpack_ids",
]
