"""One log as this program knows it: where it stands, and the appends whose outcome is open."""

import asyncio
import secrets
import sys
from bisect import bisect_right
from collections import OrderedDict
from itertools import count
from operator import itemgetter
from typing import NamedTuple

from korvet_fast.store.redis.stream.batches import Batches
from korvet_fast.store.redis.stream.entries import Entries
from korvet_fast.store.redis.stream.ids import LAST
from korvet_fast.store.redis.stream.layout import Layout
from korvet_fast.store.redis.stream.segments import Segments
from korvet_fast.store.redis.stream.state import NOTHING_YET, Totals
from korvet_fast.store.redis.stream.transaction import AppendTransaction
from korvet_fast.store.types import LogFormat

HEADER_SIZE = 61  # bytes before the records of a batch
HEADERS_SIZE = 5 * HEADER_SIZE  # kept of an idempotent producer: the headers of its last five batches


class AppendFailure(NamedTuple):
    """The failure of an append."""

    why: str  # in the server's words, or ours; "" if only the log can tell
    lost: bool = False  # with the connection, or for want of one


class Lost(NamedTuple):
    """An append whose outcome nobody knows."""

    ids: list[str]  # ids of the entries
    producers: list[str]  # fields of the state that it may have set


class FencingTokens:
    """Fencing tokens of appends: each acquisition of a log sets a new one, and Redis refuses appends with another."""

    def __init__(self) -> None:
        self._program = secrets.token_hex(8)
        self._numbers = count()

    def make(self) -> str:
        """One that was never used."""
        return f"{self._program}:{next(self._numbers)}"


class Log:
    """A log. `fencing_token` is "" while it is not acquired, and while it is packed (`packed_log.py`)."""

    __slots__ = (
        "average",
        "awaiting_durable",
        "deadline",
        "densest",
        "density",
        "dropped",
        "durable",
        "end",
        "end_field",
        "epochs",
        "failure",
        "fencing_token",
        "first",
        "foreign",
        "forgotten",
        "headers",
        "in_flight",
        "key",
        "last_answer",
        "layout",
        "log_format",
        "lost",
        "lost_below",
        "name",
        "open",
        "packed",
        "reach",
        "recovering",
        "retention_lock",
        "seen_idle_at",
        "segments",
        "state_key",
        "totals",
        "transactions",
        "users",
        "warned",
    )

    def __init__(self, name: str, namespace: str, log_format: LogFormat) -> None:
        self.name = name
        self.key = f"{namespace}:{name}"
        self.state_key = f"{{{self.key}}}:@state"
        self.lay_out(log_format)
        self.fencing_token = ""
        self.dropped = False  # nothing can be read any more
        self.epochs: list[tuple[int, int]] = []  # see `LeadershipGrant.epochs`
        self.end = 0  # where the next append goes
        self.end_field = b""  # the field `end` of the state
        self.reach = 0  # where all that was sent ended when a history broke: it may come back, with all of that
        self.durable = 0  # known to be, below here
        self.totals = NOTHING_YET
        self.headers: OrderedDict[int, bytes] = OrderedDict()  # by idempotent producer, the last writer last
        self.forgotten: dict[int, None] = {}  # producers whose headers are to go, until Redis has removed them
        # Lists of a few: an empty deque takes 760 bytes, and there are two for each partition.
        self.transactions: list[AppendTransaction] = []  # whose outcome is open, in order
        self.open: AppendTransaction | None = None  # the last of them, if it takes more
        self.in_flight = 0  # transactions sent and not answered
        self.lost: list[Lost] = []  # since the log was acquired: appends given up while their outcome was open
        self.lost_below = 0  # since the log was acquired, another program deleted the stream: these records are gone
        self.awaiting_durable: list[AppendTransaction] = []  # stored and not yet durable, in order
        self.failure: AppendFailure | None = None  # with one of them; nothing is sent meanwhile
        self.deadline = 0.0  # when the failure must be resolved
        self.recovering: asyncio.Task[None] | None = None
        self.segments = Segments()
        self.retention_lock = asyncio.Lock()
        self.first: bytes | None = None  # the first entry's id, as last seen
        self.foreign = 0  # entries that others have put in, as last seen
        self.average = 0.0  # bytes of an entry, in all of the log; 0 if not known
        self.density = 0.0  # the same in the last reply read; 0 before the first one
        self.densest = 0.0  # the largest of these
        self.last_answer = sys.maxsize  # bytes of the last reply read; as if much, before the first one
        self.warned = False  # whether a warning was logged that the log holds entries that are no records
        self.packed = b""  # all of the above that is in small objects, while nobody uses the log
        # End and density when somebody last looked whether it is idle.
        self.seen_idle_at: tuple[int, float] | None = None
        self.users = 0  # calls under way for which it must not be packed

    def lay_out(self, log_format: LogFormat) -> None:
        """Lay the log out so from now on. Whether ids have bits in `batches`, only the log's state in Redis tells."""
        self.log_format = log_format if log_format.entries_layout else log_format._replace(bits=0)
        self.layout: Layout = Entries() if log_format.entries_layout else Batches()

    @property
    def is_acquired(self) -> bool:
        """Whether it is acquired, packed or not."""
        return bool(self.fencing_token or self.packed)

    @property
    def is_busy(self) -> bool:
        """Whether appends, a recovery or calls are under way; reads of records are not counted."""
        recovering = self.recovering is not None and not self.recovering.done()
        under_way = self.transactions or self.awaiting_durable or self.in_flight or self.failure or self.users
        return bool(under_way or recovering)

    def drop(self) -> None:
        """Whoever still has the log open reads nothing, and appends nothing more."""
        self.dropped = True
        self.fencing_token, self.packed = "", b""

    def find_epoch(self, offset: int) -> tuple[int, int]:
        """The epoch under which an offset was written (-1: not known), and the offset at which the next one begins."""
        at = bisect_right(self.epochs, offset, key=itemgetter(1))
        epoch = self.epochs[at - 1][0] if at else -1
        return epoch, self.epochs[at][1] if at < len(self.epochs) else LAST + 1

    def last_totals(self) -> Totals:
        """After everything under way."""
        return self.transactions[-1].totals if self.transactions else self.totals

    def last_end_field(self) -> bytes:
        """The field `end` of the state after everything under way."""
        return self.transactions[-1].end_field if self.transactions else self.end_field

    def last_headers(self, producer: int) -> bytes:
        """A producer's, after everything under way."""
        for transaction in reversed(self.transactions):
            if producer in transaction.headers:
                return transaction.headers[producer]
        return self.headers.get(producer, b"")
