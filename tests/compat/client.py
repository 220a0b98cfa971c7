"""A foreign client as tests use it: its driver, asked in records."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from compat.drivers import Session
from compat.record import Record, read_row, write_row


class Client:
    """One client at one broker. Whatever is asked raises DriverError with Kafka's name of the error."""

    def __init__(self, name: str, bootstrap: str) -> None:
        self.name = name
        self._session = Session(name, bootstrap)
        self.ask = self._session.ask
        self.errors = self._session.errors

    def produce(
        self,
        topic: str,
        records: list[Record],
        *,
        acks: str = "all",
        compression: str = "none",
        idempotent: bool = False,
        times: list[int] | None = None,
    ) -> None:
        """To partition 0; all are acknowledged when it returns. `times` in ms, the present if not given."""
        rows = [write_row(record) for record in records]
        if times is not None:
            rows = [{**row, "timestamp": ms} for row, ms in zip(rows, times, strict=True)]
        asked = {"acks": acks, "compression": compression, "idempotent": idempotent, "records": rows}
        assert self.ask("produce", topic=topic, partition=0, **asked) == {"count": len(records)}

    def rows(self, topic: str, count: int, offset: int = 0) -> list[dict[str, Any]]:
        """The first `count` records of partition 0 from this offset, as the driver tells them."""
        found: list[dict[str, Any]] = self.ask("consume", topic=topic, partition=0, offset=offset, count=count)[
            "records"
        ]
        return found

    def consume(self, topic: str, count: int) -> list[Record]:
        """The first `count` records of partition 0, by assignment, from offset 0."""
        return [read_row(row) for row in self.rows(topic, count)]

    def close(self) -> None:
        self._session.close()


@contextmanager
def open_client(name: str, bootstrap: str) -> Iterator[Client]:
    """A client that is closed with the block."""
    client = Client(name, bootstrap)
    try:
        yield client
    finally:
        client.close()
