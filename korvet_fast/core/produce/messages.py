"""Message sets of Kafka 0.6 and 0.7: checked as 0.7.2 does, all or nothing."""

from typing import Final

from korvet_fast._native import up_convert
from korvet_fast.core.client_session import ClientSession
from korvet_fast.core.fair_executor import unpack_shortly
from korvet_fast.core.partition.legacy_partition import OffsetBatches
from korvet_fast.core.produce.check import EXPANDED
from korvet_fast.errors import CodecError
from korvet_fast.types import INLINE_EXPANDED, UNPACKS_TO_MUCH, Buffer

_HEAVY: Final = 256 * 1024  # from this size on a set is checked on another thread: empty messages take 2 ms
_SIZE: Final = 64 * 1024  # bytes of a batch: a client reads from any position, and each time the whole batch is read


async def check_messages(session: ClientSession, messages: Buffer, largest: int) -> OffsetBatches:
    """The set as batches. `largest`: bytes that a payload may have. Raises `CodecError`, `OVERSIZE` for a payload.

    Large sets are checked on another thread.
    """
    if len(messages) < _HEAVY:
        try:
            return _convert(messages, largest, INLINE_EXPANDED)
        except CodecError as error:
            if error.code != UNPACKS_TO_MUCH:
                raise
    return await session.offload(unpack_shortly, _convert, EXPANDED, messages, largest)


def _convert(messages: Buffer, largest: int, expanded: int) -> OffsetBatches:
    return up_convert(messages, largest, expanded, _SIZE)
