"""The table of requests: the number of each, how its body is read, and what answers it."""

from collections.abc import Mapping
from typing import Final

from korvet_fast.wire.legacy.api.fetch import fetch, multi_fetch
from korvet_fast.wire.legacy.api.offsets import find_offsets
from korvet_fast.wire.legacy.api.produce import produce
from korvet_fast.wire.legacy.body import Body
from korvet_fast.wire.legacy.session import Request

REQUESTS: Final[Mapping[int, Request]] = {
    0: Request(Body.read_produce, produce),
    1: Request(Body.read_fetch, fetch),
    2: Request(Body.read_fetch, multi_fetch, many=True),
    3: Request(Body.read_produce, produce, many=True),
    4: Request(Body.read_offsets, find_offsets),
}
