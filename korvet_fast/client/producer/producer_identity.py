"""The producer id and the epochs of an idempotent producer (KIP-98, KIP-360)."""

LAST_EPOCH = 32_767
SEQUENCES = 1 << 31  # after the last sequence number comes 0


class ProducerIdentity:
    """Gives each partition its producer id and epoch.

    A partition whose sequence broke goes on in a new epoch with sequence 0; the others keep theirs, since a broker
    knows epochs by partition. After the last epoch a new producer id is asked for. `wanted`: a broker must be asked.
    `fixed`: only the coordinator of transactions gives epochs.
    """

    def __init__(self, fixed: bool) -> None:
        self.wanted = True
        self._fixed = fixed
        self._producer_id = -1
        self._epoch = -1

    @property
    def current(self) -> tuple[int, int] | None:
        """Producer id and epoch; None while no broker gave one."""
        return None if self.wanted else (self._producer_id, self._epoch)

    def give(self, producer_id: int, epoch: int) -> None:
        """A broker's answer."""
        self._producer_id, self._epoch = producer_id, epoch
        self.wanted = False

    def bump(self, broken: tuple[int, int] | None) -> bool:
        """The partition with this identity needs another. Once for all partitions that break in the same epoch.

        False: only the coordinator gives one. None: a broker is asked for another one already.
        """
        if broken is not None and broken == self.current and not self._fixed:
            self._use_next()
        return not self._fixed

    def _use_next(self) -> None:
        if self._epoch < LAST_EPOCH:
            self._epoch += 1
        else:
            self.wanted = True


class PartitionSequence:
    """The sequence numbers of one partition, and the identity they belong to. Kept whatever metadata says, also while
    the partition is forgotten (`IdleTopics`).

    `idempotent` False: the partition has none, and `identity` is (-1, -1).
    """

    def __init__(self, producer: ProducerIdentity, idempotent: bool) -> None:
        self._producer = producer
        self._idempotent = idempotent
        self._own: tuple[int, int] | None = None if idempotent else (-1, -1)
        self._next = 0
        self._lost = False  # until `renew`

    @property
    def is_missing(self) -> bool:
        """Whether the next batch needs a producer id or an epoch that no broker gave yet."""
        return self._own is None and (self._lost or self._producer.current is None)

    @property
    def is_begun(self) -> bool:
        """Whether a new sequence could not stand for it: a broker may know numbers of this one."""
        return self._idempotent and (self._own is not None or self._lost)

    @property
    def identity(self) -> tuple[int, int]:
        """Producer id and epoch. Only when it is not missing."""
        return self._own or self._begin()

    def advance(self, sequence: int, count: int) -> int:
        """The sequence number `count` records after another. After the last number comes 0."""
        return (sequence + count) % SEQUENCES if self._idempotent else -1

    def take(self, count: int) -> int:
        """Give the next `count` numbers away: returns the first, -1 without idempotence. Only when none is missing."""
        if not self._idempotent:
            return -1
        if self._own is None:
            self._begin()
        first, self._next = self._next, (self._next + count) % SEQUENCES
        return first

    def renew(self) -> None:
        """Take the producer's identity as it is by now, with sequence number 0."""
        self._own = None if self._idempotent else (-1, -1)
        self._lost = False

    def restart(self, sequence: int | None) -> None:
        """Go on with a number that no broker has, or (None) in a new epoch, because some broker may have it."""
        if not self._idempotent or self._own is None:
            return
        if sequence is not None:
            self._next = sequence
        else:
            self._lost = not self._producer.bump(self._own)
            self._own = None

    def _begin(self) -> tuple[int, int]:
        assert self._producer.current is not None, "asked for first"
        self._own = self._producer.current
        self._next = 0
        return self._own
