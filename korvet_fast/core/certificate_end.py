"""When a certificate ends, and the sentence about it: in the broker's log, and among doctor's findings."""

from datetime import datetime, timedelta
from typing import Final, NamedTuple

_SOON: Final = timedelta(days=30)


class CertificateEnd(NamedTuple):
    """The time (UTC) for which a certificate in `file` is good. `then`: what happens when that has passed."""

    file: str
    subject: str
    begins: datetime
    ends: datetime
    then: str

    def is_good(self, now: datetime) -> bool:
        """Whether it can be used now."""
        return self.begins <= now < self.ends

    def is_due(self, now: datetime) -> bool:
        """Whether somebody has to see to it: it cannot be used, or not for much longer."""
        return not self.is_good(now) or self.ends - now < _SOON

    def describe(self, now: datetime) -> str:
        """When it ends, and what to do where somebody has to."""
        name = f"{self.file}: {self.subject}"
        if now < self.begins:
            return f"{name} is valid from {self.begins:%Y-%m-%d %H:%M} UTC on: look at this machine's clock"
        if now >= self.ends:
            return f"{name} ended on {self.ends:%Y-%m-%d}, and {self.then}: put a new one there"
        left = f"{name} ends on {self.ends:%Y-%m-%d}, in {(self.ends - now).days} days"
        return f"{left}: put a new one there, which a running broker reads by itself" if self.is_due(now) else left
