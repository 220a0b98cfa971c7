"""Headers of idempotent producers' batches: looking them up, and removing those that are kept no longer."""

import sys
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from itertools import islice

from korvet_fast.store.redis.connection.calls import IdempotentCalls
from korvet_fast.store.redis.log.log import HEADER_SIZE, Log
from korvet_fast.store.redis.log.packed_log import unpack_log
from korvet_fast.store.redis.stream.scripts import FORGET
from korvet_fast.store.redis.stream.state import headers_field

_AT_ONCE = 1000  # fields that one command removes: others wait for Redis meanwhile
_ROOM = 1024  # bytes that a table may take for each entry: several times what it takes without deletions
_SMALL = 4096  # bytes of a table that are not worth the trouble


class RedisProducerHeaders:
    """The `ProducerHeaders` of a store's logs."""

    def __init__(self, logs: Mapping[str, Log]) -> None:
        self._logs = logs

    def recent_headers(self, log: str) -> bytes:
        """See `ProducerHeaders.recent_headers`."""
        state = self._logs.get(log)
        if state is None:
            return b""
        unpack_log(state)
        return _join(state.headers)

    def forget_producer(self, log: str, producer: int) -> None:
        """See `ProducerHeaders.forget_producer`: with the next append, or when nobody uses the log."""
        state = self._logs.get(log)
        if state is None:
            return
        unpack_log(state)
        if state.headers.pop(producer, None) is None:
            return
        state.forgotten[producer] = None
        if sys.getsizeof(state.headers) > _SMALL + _ROOM * len(state.headers):  # a table does not shrink by itself
            left = list(state.headers.items())
            state.headers.clear()
            state.headers.update(left)


def _join(headers: "OrderedDict[int, bytes]") -> bytes:
    each = [found[at : at + HEADER_SIZE] for found in headers.values() for at in range(0, len(found), HEADER_SIZE)]
    each.sort(key=lambda header: header[:8])  # base offsets are not negative: their bytes are in their order
    return b"".join(each)


def list_forgotten(log: Log) -> list[int]:
    """Some of the producers whose headers have to go, none of whose batches is under way."""
    under_way: set[int] = set().union(*(transaction.headers for transaction in log.transactions))
    return [producer for producer in islice(log.forgotten, _AT_ONCE) if producer not in under_way]


def drop_forgotten(log: Log, producers: Sequence[int]) -> None:
    """Redis has removed the headers of these."""
    for producer in producers:
        log.forgotten.pop(producer, None)


async def remove_forgotten(calls: IdempotentCalls, log: Log) -> None:
    """Remove forgotten headers from the state of a log that nobody appends to. Raises `StoreError`.

    Redis compares the fencing token and the end: nothing is removed that an append, or another program, has set since.
    """
    while log.forgotten and log.fencing_token and not log.transactions and log.failure is None:
        end_field, producers = log.end_field, list_forgotten(log)
        fields = map(headers_field, producers)
        removed = await calls.run(FORGET, (log.key, log.state_key), log.fencing_token, end_field, *fields)
        if log.end_field != end_field:
            continue
        if not removed:
            return
        drop_forgotten(log, producers)
