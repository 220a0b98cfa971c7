"""The context that the connections of one server share."""

from collections.abc import Callable
from typing import Generic, NamedTuple, TypeVar

from korvet_fast.core.fair_queue import FairQueue
from korvet_fast.net.busy_poll import BusyPoll
from korvet_fast.net.limits import Limits
from korvet_fast.net.pool import Pool
from korvet_fast.rate_limited_log import RateLimitedLog

C = TypeVar("C")


class ServerContext(NamedTuple, Generic[C]):
    """`C`: the type of a connection."""

    window: memoryview  # one buffer that all connections of the loop read into
    ciphertext: memoryview  # as large where there is TLS: it is read into this one, and decrypted into the other
    pool: Pool
    queue: FairQueue
    limits: Limits
    log: RateLimitedLog
    busy_poll: BusyPoll
    greet: Callable[[C], None]  # called with a connection whose first request is complete
    forget: Callable[[C], None]  # called with a connection that is lost
