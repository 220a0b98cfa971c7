"""The differences between the two layouts of a log (entries.py, batches.py)."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from korvet_fast.store.redis.stream.transaction import AppendTransaction
from korvet_fast.store.types import LogFormat, RecordBatch
from korvet_fast.types import Buffer

# Bytes that batches may decompress to when they are taken apart; appending bounds them more tightly.
EXPANDED = 1 << 30


class DecodedReply(NamedTuple):
    """The records of a reply to XRANGE."""

    data: list[Buffer]  # record batches
    next: int  # the offset after the entries that were looked at
    seen: int  # entries of the reply that were looked at; all, unless there were too many bytes
    skipped: int  # entries among these that are no records of ours


class Layout(Protocol):
    """How record batches become entries of a stream, and come back."""

    def put(
        self, transaction: AppendTransaction, key: str, log_format: LogFormat, batches: Sequence[RecordBatch]
    ) -> None:
        """Take an append into a transaction, all of it or nothing. Raises `KorvetError` INVALID_RECORD."""

    def renew(self, transaction: AppendTransaction, key: str, log_format: LogFormat) -> None:
        """The transaction's opening has changed."""

    def pack(
        self, transaction: AppendTransaction, key: str, state_key: str, log_format: LogFormat
    ) -> tuple[list[Buffer], int]:
        """The transaction as bytes, and how many commands it is. `key`, `state_key`: of the stream and its state."""

    def list_ids(self, transaction: AppendTransaction, log_format: LogFormat) -> list[str]:
        """The ids of the transaction's entries of the stream."""

    def unpack(self, reply: Buffer, log_format: LogFormat, start: int, max_bytes: int, epoch: int) -> DecodedReply:
        """An XRANGE reply as batches, `max_bytes` at most but one record at least, none below `start`."""
