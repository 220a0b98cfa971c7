"""Plain values that every floor may use (a leaf)."""

from typing import Final, TypeAlias

# collections.abc.Buffer comes with Python 3.12.
Buffer: TypeAlias = bytes | bytearray | memoryview

LATEST = -1  # ListOffsets: the offset after the last record
EARLIEST = -2
MAX_TIMESTAMP = -3  # the record with the largest time

INLINE_EXPANDED = 128 * 1024  # bytes a batch may decompress to on the loop; one that needs more goes to another thread
SHORT_EXPANDED = 4 * 1024 * 1024  # and in a turn of that thread, some 10 ms; beyond it, see `fair_executor.Longer`
UNPACKS_TO_MUCH: Final = "DECOMPRESSION_LIMIT"  # the codec's code for a batch that decompresses to more than allowed
