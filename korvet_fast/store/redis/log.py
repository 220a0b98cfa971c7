"""One log as this program knows it: where it stands, and the appends whose outcome is open."""

import asyncio
import secrets
from bisect import bisect_right
from collections import OrderedDict, deque
from itertools import count
from operator import itemgetter
from typing import NamedTuple

from korvet_fast.store.interface import Form
from korvet_fast.store.redis.batches import Batches
from korvet_fast.store.redis.entries import Entries
from korvet_fast.store.redis.group import Group
from korvet_fast.store.redis.ids import LAST
from korvet_fast.store.redis.layout import Layout
from korvet_fast.store.redis.pieces import Pieces
from korvet_fast.store.redis.state import Totals

HEAD = 61  # bytes before the records of a batch
HEADS = 5 * HEAD  # kept of an idempotent producer: the heads of its last five batches


class Trouble(NamedTuple):
    """What went wrong with an append."""

    why: str  # in the server's words, or ours; "" if that is to be looked for in the log
    lost: bool = False  # with the connection, or for want of one


class Marks:
    """Marks that fence appends: whoever takes a log over gives it one of its own."""

    def __init__(self) -> None:
        self._program = secrets.token_hex(8)
        self._numbers = count()

    def make(self) -> str:
        """One that was never used."""
        return f"{self._program}:{next(self._numbers)}"


class Log:
    """A log. `fence` is "" while it is not attached."""

    __slots__ = (
        "cutting",
        "deadline",
        "density",
        "durable",
        "end",
        "epochs",
        "fence",
        "first",
        "flying",
        "foreign",
        "forgotten",
        "form",
        "groups",
        "heads",
        "key",
        "layout",
        "mark",
        "name",
        "open",
        "pieces",
        "reach",
        "resolving",
        "rounds",
        "state_key",
        "totals",
        "trouble",
        "warned",
    )

    def __init__(self, name: str, namespace: str, form: Form) -> None:
        self.name = name
        self.key = f"{namespace}:{name}"
        self.state_key = f"{{{self.key}}}:@state"
        self.lay_out(form)
        self.fence = ""
        self.epochs: list[tuple[int, int]] = []  # see `Attached.epochs`
        self.end = 0  # where the next append goes
        self.mark = b""  # what the state has as its end
        self.reach = 0  # where all that was sent ended when a history broke: it may come back, with all of that
        self.durable = 0  # known to be, below here
        self.totals = Totals()
        self.heads: OrderedDict[int, bytes] = OrderedDict()  # of idempotent producers; who came last, last
        self.forgotten: list[int] = []  # of these, whose heads are to be removed
        self.groups: deque[Group] = deque()  # whose outcome is open, in order
        self.open: Group | None = None  # the last of them, if it takes more
        self.flying = 0  # of them, sent and not answered
        self.rounds: deque[Group] = deque()  # stored and not yet durable, in order
        self.trouble: Trouble | None = None  # with one of them; nothing is sent meanwhile
        self.deadline = 0.0  # when trouble must be over
        self.resolving: asyncio.Task[None] | None = None
        self.pieces = Pieces()
        self.cutting = asyncio.Lock()
        self.first: bytes | None = None  # the first entry's id, as last seen
        self.foreign = 0  # entries that others have put in, as last seen
        self.density = 0.0  # bytes of an entry, in what was read last
        self.warned = False  # that it holds what is no record

    def lay_out(self, form: Form) -> None:
        """How it is laid out, from now on."""
        self.form = form
        self.layout: Layout = Entries() if form.single else Batches()

    def find_epoch(self, offset: int) -> tuple[int, int]:
        """Under which epoch an offset was written (-1: that is not known), and below which offset that holds."""
        at = bisect_right(self.epochs, offset, key=itemgetter(1))
        epoch = self.epochs[at - 1][0] if at else -1
        return epoch, self.epochs[at][1] if at < len(self.epochs) else LAST + 1

    def last_totals(self) -> Totals:
        """After everything under way."""
        return self.groups[-1].totals if self.groups else self.totals

    def last_mark(self) -> bytes:
        """The end that the state has after everything under way."""
        return self.groups[-1].mark if self.groups else self.mark

    def last_heads(self, producer: int) -> bytes:
        """A producer's, after everything under way."""
        for group in reversed(self.groups):
            if producer in group.heads:
                return group.heads[producer]
        return self.heads.get(producer, b"")
