"""The check of a record batch of format v2 before it is appended: may the topic take it, and is it well formed?

Batches that take long to check, large ones and those that unpack to much, are checked on another thread.
"""

import asyncio
from typing import Final, TypeAlias

from korvet_fast._native import assign_offsets, recompress, to_messages, validate_batch
from korvet_fast.core.client_session import ClientSession
from korvet_fast.core.fair_executor import unpack_shortly
from korvet_fast.core.partition.partition import BatchSummary, Partition
from korvet_fast.core.topic_config import TopicConfig
from korvet_fast.errors import CodecCode, CodecError, Errors, KorvetError
from korvet_fast.types import INLINE_EXPANDED, UNPACKS_TO_MUCH

EXPANDED: Final = 1 << 28  # bytes a batch may decompress to; the codec's 64 x compressed + 1 MiB is mostly less
HEAVY: Final = 1536 * 1024  # from this size on a batch is checked on another thread
HEAVY_COMPRESSED: Final = 16 * 1024  # and from this size if it is compressed; the codec lets go of the GIL above it too
_ATTRIBUTES = 22  # where in a batch the low byte of the attributes is
_ZSTD = 4

Records: TypeAlias = bytearray | memoryview
Checked: TypeAlias = tuple[Records, BatchSummary]

# The errors for `validate_batch`'s findings. CORRUPT_MESSAGE makes a client send again, because the bytes may have been
# damaged on the way; INVALID_RECORD tells it that its batch is wrong and stays wrong.
CODEC_ERRORS: Final[dict[CodecCode, Errors]] = {
    "TRUNCATED": Errors.CORRUPT_MESSAGE,
    "BAD_CRC": Errors.CORRUPT_MESSAGE,
    "BAD_LENGTH": Errors.CORRUPT_MESSAGE,
    "CORRUPT_COMPRESSION": Errors.CORRUPT_MESSAGE,
    "BAD_MAGIC": Errors.INVALID_RECORD,  # as Kafka calls older formats in version 3 and up of Produce
    "UNKNOWN_COMPRESSION": Errors.UNSUPPORTED_COMPRESSION_TYPE,
    UNPACKS_TO_MUCH: Errors.MESSAGE_TOO_LARGE,
    "OVERSIZE": Errors.MESSAGE_TOO_LARGE,
    "NEGATIVE_LENGTH": Errors.INVALID_RECORD,
    "VARINT_OVERFLOW": Errors.INVALID_RECORD,
    "BAD_UTF8": Errors.INVALID_RECORD,
    "UNEXPECTED_NULL": Errors.INVALID_RECORD,
    "COUNT_EXCEEDS_INPUT": Errors.INVALID_RECORD,
    "TRAILING_BYTES": Errors.INVALID_RECORD,
    "TOO_MANY_ELEMENTS": Errors.INVALID_RECORD,
    "OUT_OF_RANGE": Errors.INVALID_RECORD,
    "BAD_COUNT": Errors.INVALID_RECORD,
    "BAD_OFFSET": Errors.INVALID_RECORD,
    "BAD_ATTRIBUTES": Errors.INVALID_RECORD,
    "BAD_RECORD": Errors.INVALID_RECORD,
    "BAD_VALUE": Errors.INVALID_RECORD,  # a producer id without epoch or sequence
    "NESTED_COMPRESSION": Errors.INVALID_RECORD,
}


def blame_records(error: CodecError) -> KorvetError:
    """The error of a producer whose records break the format; a code that no bytes can cause is our own bug."""
    return KorvetError(CODEC_ERRORS[error.code], str(error))


def find_light_size(config: TopicConfig, zstd: bool) -> int:
    """The size up to which a batch, whatever its compression, is checked at once and need not be changed."""
    return min(config.max_message_bytes, HEAVY_COMPRESSED) if config.as_sent and zstd else 0


def is_light(config: TopicConfig, data: Records, zstd: bool) -> bool:
    """Whether a batch is checked at once, and need not be changed; one that is not compressed may be larger."""
    size = len(data)
    return (
        config.as_sent
        and zstd
        and size <= config.max_message_bytes
        and (size <= HEAVY_COMPRESSED or (size <= HEAVY and not data[_ATTRIBUTES] & 7))
    )


def is_heavy(partition: Partition, data: Records | None, zstd: bool) -> bool:
    """Whether to check these records on another thread. Raises `KorvetError` for what need not be checked at all."""
    if not data:
        raise KorvetError(Errors.INVALID_RECORD, "the request holds no record batch for this partition")
    size, config = len(data), partition.config
    if size > config.max_message_bytes:
        limit = config.max_message_bytes
        raise KorvetError(Errors.MESSAGE_TOO_LARGE, f"{size} bytes, but {partition.topic} takes {limit}")
    compression = _read_compression(data)
    if compression == _ZSTD and not zstd:
        raise KorvetError(Errors.UNSUPPORTED_COMPRESSION_TYPE, "zstd needs a newer version of the request")
    return size > (HEAVY_COMPRESSED if compression else HEAVY) or config.compression not in (None, compression)


def check(data: Records, partition: Partition, expanded: int = INLINE_EXPANDED) -> Checked:
    """The one batch in `data`, verified, in the compression and the format the topic wants. Raises `CodecError`."""
    summary = validate_batch(data, expanded)
    if partition.config.legacy:
        messages, many = to_messages(data, expanded)
        return messages, (len(messages), many, *summary[2:])
    wanted = partition.config.compression
    if wanted is None or wanted == _read_compression(data):
        return data, summary
    _, count, time, flags, sequence = summary
    assign_offsets(data, 0, -1, time, None)  # the header tells the true time from now on
    packed = recompress(data, wanted, expanded)
    return packed, (len(packed), count, time, flags, sequence)


def begin_check(
    session: ClientSession, data: Records, partition: Partition, heavy: bool
) -> "Checked | asyncio.Future[Checked]":
    """Check a batch that is appended later, in its turn: now, or on another thread.

    Raises `CodecError`; so does the future.
    """
    if not heavy:
        try:
            return check(data, partition)
        except CodecError as error:
            if error.code != UNPACKS_TO_MUCH:
                raise
    return session.offload(unpack_shortly, check, EXPANDED, data, partition)


def _read_compression(data: Records) -> int:
    return data[_ATTRIBUTES] & 7 if len(data) > _ATTRIBUTES else 0
