"""The native codec's contract once more, in plain Python: the oracle of tests, and the first column of benchmarks.

Written to be read, not to be fast. `korvet_fast/_native.pyi` is the contract; both raise `CodecError` with the same
codes.
"""

from korvet_reference.arrow import ArrowColumns, to_arrow
from korvet_reference.batch import (
    assign_offsets,
    batch_headers,
    find_time,
    recompress,
    slice_batches,
    validate_batch,
)
from korvet_reference.column_rows import ColumnRows, RowRun, build_rows, row_places
from korvet_reference.columns import Column, build_batch, to_columns
from korvet_reference.frames import Frames
from korvet_reference.header import Batch
from korvet_reference.legacy import down_convert, to_messages, to_values, up_convert, whole_messages
from korvet_reference.message_cells import MessageCells
from korvet_reference.page import decode_batches, decode_records
from korvet_reference.resp import Replies, ReplyError, encode_command_parts, encode_commands, parse_replies, parse_reply
from korvet_reference.rows import ArrowRecords
from korvet_reference.schema import Schema
from korvet_reference.stream import encode_append, encode_append_batches
from korvet_reference.text import Lines, ProduceRun, write_messages

__all__ = [
    "ArrowColumns",
    "ArrowRecords",
    "Batch",
    "Column",
    "ColumnRows",
    "Frames",
    "Lines",
    "MessageCells",
    "ProduceRun",
    "Replies",
    "ReplyError",
    "RowRun",
    "Schema",
    "assign_offsets",
    "batch_headers",
    "build_batch",
    "build_rows",
    "decode_batches",
    "decode_records",
    "down_convert",
    "encode_append",
    "encode_append_batches",
    "encode_command_parts",
    "encode_commands",
    "find_time",
    "parse_replies",
    "parse_reply",
    "recompress",
    "row_places",
    "slice_batches",
    "to_arrow",
    "to_columns",
    "to_messages",
    "to_values",
    "up_convert",
    "validate_batch",
    "whole_messages",
    "write_messages",
]
