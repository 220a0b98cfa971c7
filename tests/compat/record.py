"""What every client in this folder is asked to send and to bring back."""

from typing import NamedTuple, Protocol


class Record(NamedTuple):
    """A record as a client sees it; `headers` in order, duplicates allowed."""

    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()


class Client(Protocol):
    """One foreign client. Both calls are complete when they return: sent and acknowledged, or read."""

    name: str

    def produce(
        self,
        bootstrap: str,
        topic: str,
        records: list[Record],
        *,
        acks: str,
        compression: str,
        idempotent: bool,
    ) -> None: ...

    def consume(self, bootstrap: str, topic: str, count: int) -> list[Record]:
        """The first `count` records of partition 0, by assignment, from offset 0."""


# One record of each form that has broken somebody: plain, null key, tombstone, empty but not null, non-text bytes,
# headers in order with a duplicate and a null value, a value larger than a page.
FORMS = [
    Record(b"key", b"value"),
    Record(None, b"no key"),
    Record(b"gone", None),
    Record(b"", b""),
    Record(bytes(range(256)), bytes(reversed(range(256)))),
    Record(b"headed", b"v", (("source", b"web"), ("source", b"again"), ("empty", b""), ("null", None))),
    Record(b"large", bytes(70_000)),
]
