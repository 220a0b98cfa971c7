"""A broker's error code in words."""

from korvet_fast.client.connection import ClientError
from korvet_fast.errors import FAULTS
from korvet_fast.wire.kafka.faults import CODES

_NAMES = {code: name for name, code in CODES.items()}


class Refused(ClientError):
    """A broker answered with an error code. `name`: Kafka's name of it; `retriable`: later it may say yes."""

    def __init__(self, sentence: str, code: int) -> None:
        super().__init__(sentence)
        self.name = _NAMES.get(code, f"error {code}")
        self.retriable = self.name in FAULTS and FAULTS[self.name].retriable


def explain(code: int, detail: str | None = None) -> str:
    """The sentence for an error code: the broker's own detail if it gave one, else what the code means."""
    name = _NAMES.get(code)
    if name is None:
        return f"{detail or 'the broker refused'} (error {code})"
    return f"{detail or FAULTS[name].sentence} ({name})"


def check(subject: str, code: int, detail: str | None = None) -> None:
    """Raise `Refused` about `subject` unless the code is 0."""
    if code:
        raise refusal(subject, code, detail)


def refusal(subject: str, code: int, detail: str | None = None) -> Refused:
    """What an error code says about `subject`."""
    return Refused(f"{subject}: {explain(code, detail)}", code)
