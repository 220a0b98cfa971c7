"""The segments of a closed log, packed: everything known of them as one block of bytes, without objects and open files.

Python gives back a MiB of small objects when the last of them has gone. A log that was used while memory was full left
its segments, indexes and paths among the objects of requests, a few in each MiB, and so kept all of these. One block
for each log, made when nobody is busy, keeps none. Nothing is written: on disk a closed log is as an open one.
"""

import struct
from collections.abc import Sequence
from pathlib import Path

from korvet_fast.store.embedded.index import ROW, Index, Summary
from korvet_fast.store.embedded.segment import Segment

_SEGMENT = struct.Struct("<5qq")  # base, size, end, first time, max time, rows of the index in memory
_BESIDE = -1  # in place of rows: the index is in the file beside the segment


def pack_segments(segments: Sequence[Segment]) -> bytes:
    """Everything known of the segments, the rows of indexes that are in memory included."""
    parts = []
    for segment in segments:
        index = segment.index
        rows = _BESIDE if index is None else len(index)
        parts.append(_SEGMENT.pack(segment.base, *segment.summary, rows))
        if index is not None:
            parts.append(index.pack())
    return b"".join(parts)


def unpack_segments(directory: Path, packed: bytes) -> list[Segment]:
    """The segments in `directory` that `pack_segments` packed."""
    segments = []
    view, at = memoryview(packed), 0
    while at < len(view):
        base, size, end, first_time, max_time, rows = _SEGMENT.unpack_from(view, at)
        at += _SEGMENT.size
        index = None
        if rows != _BESIDE:
            index = Index.unpack(view[at : at + rows * ROW])
            at += rows * ROW
        segments.append(Segment(directory, base, Summary(size, end, first_time, max_time), index))
    return segments
