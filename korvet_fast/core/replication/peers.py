"""Requests and answers between brokers that copy each other's logs, as plain values; `Peers` carries them over."""

from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import Final, NamedTuple, Protocol

from korvet_fast.core.partition.leader_epochs import EpochOffset
from korvet_fast.core.replication.quorum import LogPosition, Promise
from korvet_fast.errors import NONE, ChangeTooLarge, Errors, StoreError
from korvet_fast.types import Buffer

METADATA_LOG = "@registry:0"  # the log of topics, settings, groups and leaders
_DIGITS = 10  # of an epoch
UNCLEAN = "unclean"  # key in it: the epoch under which a broker last led it that may have lacked records
LARGEST_SAVE: Final = 32 << 20  # bytes of a batch: a follower fetches one whole, and takes 64 MB at a time
_RECORD: Final = 24  # bytes of a record besides its key and its value, at most


def qualify(log: str, topic: str) -> str:
    """A log's name in requests, with its topic's id: a topic of the same name may be made later (KIP-516)."""
    name, _, index = log.rpartition(":")
    return f"{name}/{topic}:{index}" if topic else log


def split_qualified(log: str) -> tuple[str, str]:
    """The log's own name, and its topic's id; "" where none is named."""
    topic, _, index = log.rpartition(":")
    name, _, identity = topic.partition("/")
    return f"{name}:{index}", identity


class NotCarriedOut(StoreError):
    """The other broker was not reached, or refused: nothing was done."""


class FetchPosition(NamedTuple):
    """A follower has everything below `offset` on its disk, and follows the leader of `epoch`. `log`: see `qualify`."""

    log: str
    epoch: int
    offset: int


class FetchedLog(NamedTuple):
    """A leader's answer for one log: whole batches from the offset that was asked for.

    `leader` and `epoch`: the present ones, -1 where they are not known; only where there is an error.
    """

    log: str
    error: Errors = NONE
    high_watermark: int = -1
    start: int = -1
    records: Sequence[Buffer] = ()
    leader: int = -1
    epoch: int = -1


class EpochRequest(NamedTuple):
    """A follower of the leader of `leader_epoch` asks where `epoch` ends in the leader's log."""

    log: str
    leader_epoch: int
    epoch: int


class EpochEnd(NamedTuple):
    """The answer; see `LeaderEpochCache.find_end`."""

    log: str
    error: Errors
    end: EpochOffset = (-1, -1)


def read_unclean(value: bytes, known: int) -> int:
    """The value of `UNCLEAN`; where that is damaged, the one that was known."""
    whole = value.isdigit() and len(value) <= _DIGITS
    return int(value) if whole and int(value) < 1 << 31 else known


class KeyVerb(IntEnum):
    """A verb of `KeyStore`, or `SharedStore.version`."""

    LOAD = 0
    SCAN = 1
    SAVE = 2
    VERSION = 3


class KeyRequest(NamedTuple):
    """`key`: a key, or a prefix; `changes`: of a save, each a `CompareAndSet` or what makes one.

    `after`: a scan begins behind this key.
    """

    verb: KeyVerb
    key: str = ""
    changes: Sequence[tuple[str, bytes | None, bytes | None]] = ()
    after: str = ""

    def check_size(self) -> None:
        """Raises `ChangeTooLarge` for a save that no follower could copy."""
        sizes = [
            (len(key.encode()) + len(value or b"") + _RECORD, key)
            for key, value, expected in self.changes
            if value != expected
        ]
        total = sum(size for size, _ in sizes)
        if total > LARGEST_SAVE:
            size, key = max(sizes)
            raise ChangeTooLarge(
                f"a change of {total:,} bytes in @registry, {size:,} of them under the key {key}, is too large to be "
                f"copied: {LARGEST_SAVE:,} bytes are the limit"
            )


class KeyAnswer(NamedTuple):
    """`done`: whether a save was one, or a scan is at its end; `number`: a version; `rows`: keys with their values."""

    done: bool = False
    number: int = 0
    rows: Mapping[str, bytes] = {}


class VoteRequest(NamedTuple):
    """`candidate` wants to lead the metadata log under `epoch`; its own log ends at `position`.

    `trial`: nothing is promised yet, the candidate only asks what the answer would be. `unclean`: see `Voter.vote`.
    """

    candidate: int
    epoch: int
    position: LogPosition
    trial: bool = False
    unclean: bool = False


class Vote(NamedTuple):
    """The answer, and whom the voter follows. `elected`: the voter knows that this one had the votes."""

    promise: Promise
    leader: int
    elected: bool


class Peers(Protocol):
    """The other brokers. Raises `NotCarriedOut`, or `OutcomeUnknown` where an answer was lost.

    `catching_up`: for logs that are not in sync; logs in sync wait for no answer to these requests.
    """

    async def fetch(
        self, broker: int, positions: Sequence[FetchPosition], wait_ms: int, *, catching_up: bool = False
    ) -> list[FetchedLog]:
        """Fetch the batches behind these positions; the leader waits this long while there are none."""

    async def find_epoch_ends(
        self, broker: int, asked: Sequence[EpochRequest], *, catching_up: bool = False
    ) -> list[EpochEnd]:
        """The ends of epochs in the leader's logs."""

    async def ask_keys(self, broker: int, request: KeyRequest) -> KeyAnswer:
        """Carried out by the leader of the metadata log only."""

    async def vote(self, broker: int, request: VoteRequest) -> Vote:
        """Ask for a vote."""

    async def watch(self) -> None:
        """Warn each day of brokers that no new connection comes about with: open ones outlive their certificates."""

    async def close(self) -> None:
        """Close all connections."""
