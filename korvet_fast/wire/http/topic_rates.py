"""What topics get and give in a second, measured between two looks of whoever watches: nothing counts meanwhile."""

from typing import Final, NamedTuple

_SHORTEST: Final = 1.0  # seconds between two samples
_LONGEST: Final = 60.0  # seconds after which a sample is too old to compare with


class Counts(NamedTuple):
    """Since the broker started."""

    records: int
    bytes_in: int
    bytes_out: int


class Rates(NamedTuple):
    """In a second."""

    records: float
    bytes_in: float
    bytes_out: float


class TopicRates:
    """The last samples of the topics that somebody looks at, and what came of them."""

    def __init__(self) -> None:
        # By topic id: when the counts were taken (s, monotonic), the counts, and the rates of the time before.
        self._samples: dict[bytes, tuple[float, Counts, Rates | None]] = {}

    def measure(self, topic: bytes, counts: Counts, now: float) -> Rates | None:
        """The rates since the last sample; None before there are two."""
        since, before, rates = self._samples.get(topic, (-_LONGEST, counts, None))
        passed = now - since
        if passed < _SHORTEST:
            return rates
        if passed < _LONGEST and all(new >= old for new, old in zip(counts, before, strict=True)):
            rates = Rates(*((new - old) / passed for new, old in zip(counts, before, strict=True)))
        else:
            rates = None
        self._samples[topic] = (now, counts, rates)
        return rates

    def forget_old(self, now: float) -> None:
        """Drop the samples that are of no use any more."""
        for topic in [topic for topic, (since, *_) in self._samples.items() if now - since >= _LONGEST]:
            del self._samples[topic]
