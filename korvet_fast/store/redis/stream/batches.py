"""Layout `batches`: a record batch is an entry of the stream, untouched, at the id `<base offset>-1`.

Older logs have ids as the layout `entries` has, and begin at offset 1; they keep them (`LogFormat.bits` is not 0).
"""

from collections.abc import Sequence

from korvet_fast import _native
from korvet_fast._native import encode_append_batches
from korvet_fast.store.redis.stream.ids import pack_id
from korvet_fast.store.redis.stream.layout import DecodedReply
from korvet_fast.store.redis.stream.scripts import CLOSE, GUARD
from korvet_fast.store.redis.stream.transaction import AppendTransaction
from korvet_fast.store.types import LogFormat, RecordBatch
from korvet_fast.types import Buffer

_SCRIPTS = GUARD, CLOSE
_AROUND = 4  # commands of a transaction beside its batches: MULTI, two scripts, EXEC


class Batches:
    """See `Layout`. Offsets are dense, from 0 on."""

    def put(
        self, transaction: AppendTransaction, key: str, log_format: LogFormat, batches: Sequence[RecordBatch]
    ) -> None:
        """See `Layout.put`."""
        transaction.last = batches[-1].first
        transaction.add(batches, sum(len(batch.data) for batch in batches), len(batches))

    def renew(self, transaction: AppendTransaction, key: str, log_format: LogFormat) -> None:
        """See `Layout.renew`: it is used when the transaction is packed."""

    def pack(
        self, transaction: AppendTransaction, key: str, state_key: str, log_format: LogFormat
    ) -> tuple[list[Buffer], int]:
        """See `Layout.pack`; the batches are parts of their own, the very objects."""
        compared, batches = (transaction.fencing_token, transaction.end_before), transaction.batches
        end, totals = transaction.end_field, transaction.totals
        parts = encode_append_batches(_SCRIPTS, (key, state_key), compared, end, totals, batches, log_format.bits)
        return parts, len(batches) + _AROUND

    def list_ids(self, transaction: AppendTransaction, log_format: LogFormat) -> list[str]:
        """See `Layout.list_ids`."""
        return [pack_id(batch.first, log_format.bits) for batch in transaction.batches]

    def unpack(self, reply: Buffer, log_format: LogFormat, start: int, max_bytes: int, epoch: int) -> DecodedReply:
        """See `Layout.unpack`; the batches are views of the reply."""
        data, end, seen, skipped = _native.decode_batches(reply, log_format.bits, start, max_bytes)
        return DecodedReply([*data], end, seen, skipped)
