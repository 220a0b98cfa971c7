"""The table of requests: the number of each, how its body is read, and what answers it."""

from collections.abc import Mapping
from typing import Final

from korvet_fast.core.quotas.entity import QuotaKey
from korvet_fast.wire.legacy.api.fetch import fetch, multi_fetch
from korvet_fast.wire.legacy.api.offsets import find_offsets
from korvet_fast.wire.legacy.api.produce import produce
from korvet_fast.wire.legacy.body import Body
from korvet_fast.wire.legacy.session import Request

REQUESTS: Final[Mapping[int, Request]] = {
    0: Request(Body.read_produce, produce, counts=QuotaKey.PRODUCE),
    1: Request(Body.read_fetch, fetch, counts=QuotaKey.FETCH),
    2: Request(Body.read_fetch, multi_fetch, many=True, counts=QuotaKey.FETCH),
    3: Request(Body.read_produce, produce, many=True, counts=QuotaKey.PRODUCE),
    4: Request(Body.read_offsets, find_offsets),
}
