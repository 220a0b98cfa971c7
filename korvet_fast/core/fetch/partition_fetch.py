"""One partition of a fetch: the request, and its result."""

from korvet_fast.core.partition.partition import Partition
from korvet_fast.errors import KorvetError, forget_frames
from korvet_fast.types import Buffer


class PartitionFetch:
    """Whole batches from `offset` on, `max_bytes` of them at most; `records` holds their bytes, in parts.

    `partition` is None where nothing can be read, and `error` says why. `high_watermark` and `log_start` are those of
    the moment after reading, -1 where they are not known.
    """

    __slots__ = ("error", "high_watermark", "index", "log_start", "max_bytes", "offset", "partition", "records")

    def __init__(self, index: int, offset: int, max_bytes: int, partition: Partition | None = None) -> None:
        self.index = index
        self.partition = partition
        self.offset = offset
        self.max_bytes = max_bytes
        self.error: KorvetError | None = None
        self.high_watermark = self.log_start = -1
        self.records: list[Buffer] = []

    def describe(self) -> None:
        """Note the log's start and its high watermark for the answer."""
        if self.partition is not None:
            self.high_watermark = self.partition.high_watermark.offset
            self.log_start = self.partition.log.start

    def refuse(self, error: KorvetError) -> None:
        """Note the error; nothing is read from this partition."""
        self.describe()
        self.partition = None
        self.error = forget_frames(error)

    async def read(self, left: int) -> int:
        """Read `left` bytes at most, but one batch at least if there is one; returns the bytes."""
        assert self.partition is not None
        most = self.max_bytes
        try:
            data = (await self.partition.read(self.offset, most if most < left else left)).data
        except KorvetError as error:
            self.error = forget_frames(error)
            return 0
        self.records = data
        return len(data[0]) if len(data) == 1 else sum(map(len, data))
