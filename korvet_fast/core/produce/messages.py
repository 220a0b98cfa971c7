"""Message sets of Kafka 0.6 and 0.7: checked as 0.7.2 does, and appended as they were sent, all or nothing."""

import asyncio
from typing import Any, Final, TypeAlias

from korvet_fast._native import up_convert
from korvet_fast.core.client_session import ClientSession
from korvet_fast.core.fair_executor import Longer
from korvet_fast.core.partition.partition import Partition
from korvet_fast.core.produce.check import EXPANDED, HEAVY, UNPACKS_TO_MUCH
from korvet_fast.errors import CodecError
from korvet_fast.types import INLINE_EXPANDED, SHORT_EXPANDED, Buffer

_SIZE: Final = 64 * 1024  # bytes of a batch: a client reads from any position, and each time the whole batch is read
_ALL: Final = -1  # acks: clients see what is durable

OffsetBatches: TypeAlias = list[tuple[bytearray, int]]  # batches, and how many offsets each takes


async def check_messages(session: ClientSession, messages: Buffer, largest: int) -> OffsetBatches:
    """The set as batches. `largest`: bytes that a payload may have. Raises `CodecError`, `OVERSIZE` for a payload.

    What takes long is done beside the loop.
    """
    if len(messages) <= HEAVY:
        try:
            return up_convert(messages, largest, INLINE_EXPANDED, _SIZE)
        except CodecError as error:
            if error.code != UNPACKS_TO_MUCH:
                raise
    return await session.offload(_check_beside, messages, largest, SHORT_EXPANDED)


def _check_beside(messages: Buffer, largest: int, expanded: int) -> OffsetBatches:
    try:
        return up_convert(messages, largest, expanded, _SIZE)
    except CodecError as error:
        if error.code == UNPACKS_TO_MUCH and expanded < EXPANDED:
            raise Longer(_check_beside, messages, largest, EXPANDED) from None
        raise


def append_messages(partition: Partition, batches: OffsetBatches, now: int) -> list["asyncio.Future[Any]"]:
    """Append the batches of one set; the futures that end when they are durable. Raises `KorvetError`, `StoreError`."""
    waiting = []
    for data, many in batches:
        *_, done = partition.append(data, (len(data), many, now, 0, None), _ALL, now)
        if done is not None:
            waiting.append(done)
    return waiting
