"""The producer's metrics."""

from dataclasses import dataclass


@dataclass(slots=True)
class Counts:
    """Messages since the start; a row of `send_many` is one. accepted = delivered + failed + unknown + those open."""

    accepted: int = 0
    delivered: int = 0
    failed: int = 0
    unknown: int = 0

    @property
    def ended(self) -> int:
        """Messages that have ended, in one way or the other."""
        return self.delivered + self.failed + self.unknown

    @property
    def open(self) -> int:
        """Messages that have not ended."""
        return self.accepted - self.ended


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerMetrics:
    """A look at the producer. Bytes are those of `buffer.memory`; `oldest`: seconds since the oldest was accepted,
    or began to wait for memory.

    `stalled`: partitions with messages and no progress for `stall.ms`, and topics with messages that have waited so
    long for memory, or for the topic's partitions. `retries`: batches sent again.
    """

    accepted: int
    delivered: int
    failed: int
    unknown: int
    open: int
    buffer_bytes: int
    buffer_peak_bytes: int
    waiting_for_memory: int
    requests_in_flight: int
    retries: int
    oldest: float
    stalled: tuple[str, ...]
