"""Layout `batches`: a record batch is an entry of the stream, untouched, at the id `<base offset>-1`.

Older logs have ids as the layout `entries` has, and begin at offset 1; they keep them (`LogFormat.bits` is not 0).
"""

from collections.abc import Sequence

from korvet_fast import _native
from korvet_fast._native import encode_command_parts
from korvet_fast.store.redis.connection.pipeline import Word
from korvet_fast.store.redis.stream.ids import pack_id
from korvet_fast.store.redis.stream.layout import DecodedReply
from korvet_fast.store.redis.stream.scripts import GUARD
from korvet_fast.store.redis.stream.transaction import AppendTransaction
from korvet_fast.store.types import LogFormat, RecordBatch
from korvet_fast.types import Buffer


class Batches:
    """See `Layout`. Offsets are dense, from 0 on."""

    def put(
        self, transaction: AppendTransaction, key: str, log_format: LogFormat, batches: Sequence[RecordBatch]
    ) -> None:
        """See `Layout.put`."""
        size = 0
        for data, first, _, _ in batches:
            transaction.words.append(("XADD", key, pack_id(first, log_format.bits), "batch", data))
            size += len(data)
        transaction.last = batches[-1].first
        transaction.add(batches, size, len(batches))

    def renew(self, transaction: AppendTransaction, key: str, log_format: LogFormat) -> None:
        """See `Layout.renew`: it is used when the transaction is packed."""

    def pack(self, transaction: AppendTransaction, closing: list[tuple[Word, ...]]) -> tuple[list[Buffer], int]:
        """See `Layout.pack`; the batches are parts of their own, the very objects."""
        commands = [("MULTI",), ("EVAL", GUARD, *transaction.opening), *transaction.words, *closing]
        return encode_command_parts(commands), len(commands)

    def list_ids(self, transaction: AppendTransaction, log_format: LogFormat) -> list[str]:
        """See `Layout.list_ids`."""
        return [pack_id(batch.first, log_format.bits) for batch in transaction.batches]

    def unpack(self, reply: Buffer, log_format: LogFormat, start: int, max_bytes: int, epoch: int) -> DecodedReply:
        """See `Layout.unpack`; the batches are views of the reply."""
        data, end, seen, skipped = _native.decode_batches(reply, log_format.bits, start, max_bytes)
        return DecodedReply([*data], end, seen, skipped)
