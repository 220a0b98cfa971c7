"""Clients of tests that work in a thread of their own, beside the test."""

import threading
from typing import Self


class ClientThread(threading.Thread):
    """Works from the beginning of a `with` block to its end, which raises what `work` has raised."""

    def __init__(self, name: str) -> None:
        super().__init__(name=name, daemon=True)
        self.enough = threading.Event()
        self._failure: BaseException | None = None

    def work(self) -> None:
        """Until it is `enough`."""
        raise NotImplementedError

    def run(self) -> None:
        try:
            self.work()
        except BaseException as error:  # noqa: BLE001  (of a thread: raised by `__exit__`)
            self._failure = error

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        self.enough.set()
        self.join(120)
        if kind is None:
            assert not self.is_alive(), f"{self.name} does not end"
            if self._failure is not None:
                raise self._failure
