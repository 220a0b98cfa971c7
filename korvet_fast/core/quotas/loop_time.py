"""How long the event loop was busy with one piece of work: what waits costs nothing."""

from collections.abc import Coroutine, Generator
from time import monotonic
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class LoopTime(Generic[T]):
    """Awaits `work`, with its result or its exception. `seconds`: how long the loop was busy with it so far."""

    __slots__ = ("_work", "seconds")

    def __init__(self, work: Coroutine[Any, Any, T]) -> None:
        self._work = work
        self.seconds = 0.0

    def __await__(self) -> Generator[Any, Any, T]:
        work = self._work
        thrown: BaseException | None = None
        while True:
            began = monotonic()
            try:
                waits_for = work.send(None) if thrown is None else work.throw(thrown)
            except StopIteration as stop:
                result: T = stop.value
                return result
            finally:
                self.seconds += monotonic() - began
            thrown = None
            try:
                yield waits_for
            except BaseException as error:  # noqa: BLE001  the work is told, and raises what it raises
                thrown = error
