"""The producer's requests for metadata: one request at a time, never in a burst, and again after a while."""

from korvet_fast.client.backoff import Backoff


class MetadataRefresh:
    """`due` says when to ask. `wanted`: something is unknown, or was wrong."""

    def __init__(self, backoff: Backoff, max_age: float) -> None:
        self.wanted = False
        self._in_flight = False
        self._backoff = backoff
        self._max_age = max_age
        self._expires: float | None = None  # when what is known is too old

    def want(self) -> None:
        """Ask as soon as may be."""
        self.wanted = True

    def due(self) -> float | None:
        """The time when the next request may be sent; None: there is no reason, or one is on its way."""
        if self._in_flight:
            return None
        return self._backoff.until if self.wanted else self._expires

    def sent(self) -> None:
        """A request is on its way."""
        self._in_flight = True
        self.wanted = False

    def received(self, now: float, complete: bool) -> None:
        """An answer came. `complete`: it said all that was asked; else the pauses between requests grow."""
        self._in_flight = False
        self._expires = now + self._max_age
        if complete:
            self._backoff.succeed()
        self._backoff.fail(now)  # not at once again, even if nothing is missing
        self._backoff.failures -= complete

    def failed(self, now: float) -> None:
        """No answer came."""
        self._in_flight = False
        self.wanted = True
        self._backoff.fail(now)
