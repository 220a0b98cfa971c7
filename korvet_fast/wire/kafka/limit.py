"""Requests of clients that have quotas: what they take is counted, and whoever took too much waits (KIP-13, KIP-124).

The answer comes at once and says how long its client is to send nothing. Whether the client heeds that or not, its
connection is not read for as long (KIP-219), while all others go on.

Kafka answers a Fetch beyond its quota without records, and the client asks again when its time is over. Here the
records are given, and the time is as long.
"""

import math
from collections.abc import Coroutine, Mapping
from typing import Any, Final, TypeAlias

from korvet_fast.core.client_session import ClientSession
from korvet_fast.core.quotas.entity import QuotaKey
from korvet_fast.core.quotas.loop_time import LoopTime
from korvet_fast.core.quotas.token_bucket import BURST
from korvet_fast.wire.dialect import Reply
from korvet_fast.wire.kafka.shapes.message import Message

Answer: TypeAlias = "dict[str, Any] | Reply | None"

_PRODUCE, _FETCH = 0, 1  # API keys
_PERCENT: Final = 100.0
_LONGEST: Final = 1.0  # seconds that a client waits for its share of the loop at a time, as in Kafka
_LARGEST: Final = (1 << 31) - 1  # an int32
_BEHIND_IDS: Final = 8  # bytes of an answer's length and correlation id


async def limit(
    session: ClientSession,
    message: Message,
    request: dict[str, Any],
    version: int,
    size: int,
    work: Coroutine[Any, Any, Answer],
) -> Answer:
    """The answer of `work`, counted for the client. `size`: the request's, in bytes."""
    quotas = session.broker.quotas
    buckets = quotas.find(session.principal, request["client_id"])
    wait, exceeded = 0.0, QuotaKey.PRODUCE
    if message.key == _PRODUCE and (produced := buckets.get(QuotaKey.PRODUCE)) is not None:
        # Before the work: requests behind this one are not to begin while it waits for the disk.
        wait = produced.take(size, quotas.now())
        if wait:
            session.mute(wait)
    fetched = buckets.get(QuotaKey.FETCH) if message.key == _FETCH else None
    if fetched is not None:
        most = request["max_bytes"] = min(request["max_bytes"], max(1, int(min(fetched.rate * BURST, _LARGEST))))
        request["min_bytes"] = min(request["min_bytes"], most)
    if (busy := buckets.get(QuotaKey.REQUEST)) is None:
        answer = await work
    else:
        measured = LoopTime(work)
        answer = await measured
        too_busy = min(busy.take(measured.seconds * _PERCENT, quotas.now()), _LONGEST)
        if too_busy > wait:
            wait, exceeded = too_busy, QuotaKey.REQUEST
    if fetched is not None and isinstance(answer, dict):
        too_much = fetched.take(_count_records(answer), quotas.now())
        if too_much > wait:
            wait, exceeded = too_much, QuotaKey.FETCH
    if not wait:
        return answer
    quotas.throttled[exceeded] += 1
    if exceeded is not QuotaKey.PRODUCE:
        session.mute(wait)
    return tell_throttle(message, version, answer, math.ceil(wait * 1000))


def _count_records(answer: Mapping[str, Any]) -> int:
    """Bytes of records in an answer to Fetch."""
    return sum(
        len(data)
        for topic in answer.get("responses", ())
        for row in topic["partitions"]
        for data in row.get("records") or ()
    )


def tell_throttle(message: Message, version: int, answer: Answer, wait_ms: int) -> Answer:
    """The answer, with the milliseconds that its client is to wait, or with those that it has already."""
    if isinstance(answer, dict):
        return answer | {"throttle_time_ms": max(wait_ms, answer.get("throttle_time_ms", 0))}
    at = _find_throttle(message, version)
    if answer is None or at is None:
        return answer
    first, *others = answer
    before, behind = bytes(first[:at]), bytes(first[at + 4 :])
    told = max(wait_ms, int.from_bytes(first[at : at + 4], "big", signed=True))
    return [before + told.to_bytes(4, "big") + behind, *others]


def _find_throttle(message: Message, version: int) -> int | None:
    """Where an encoded answer has its throttle time, if that stands at its beginning: it does but in ApiVersions."""
    at = _BEHIND_IDS
    for field in message.response_shape.fields[1:]:
        if field.kind != "tags":
            return at if field.name == "throttle_time_ms" and version >= field.since else None
        at += version >= field.since
    return None
