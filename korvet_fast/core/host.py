"""What every partition shares: the store, the clock, what was lost, and a place for work in the background."""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, NamedTuple

from korvet_fast.core.clock import Clock
from korvet_fast.store.interface import Store

if TYPE_CHECKING:
    from korvet_fast.core.tenure import Tenure

log = logging.getLogger(__name__)

_REMEMBERED = 10_000  # losses


class Loss(NamedTuple):
    """Records that were stored and are not there any more: `first` <= offset < `end` of a log, found at `ms`."""

    log: str
    first: int
    end: int
    ms: int


class Host:
    """`epoch`: the lowest leader epoch a partition may have. `draining` tells long polls to answer at once.

    `version` grows with every change of what clients are told about topics and their leaders. `look` says that
    somebody else leads what this broker did: it is time to see who is there. `forks` counts the times that the server's
    history broke: what was put into the registry before may not be there any more. `returning` finds out what is still
    ours then; no log is taken over before it has ended.
    """

    def __init__(self, store: Store, clock: Clock) -> None:
        self.store = store
        self.clock = clock
        self.epoch = 0
        self.draining = False
        self.version = 0
        self.forks = 0
        self.returning: asyncio.Task[None] | None = None
        self.losses: deque[Loss] = deque(maxlen=_REMEMBERED)
        self.doubtful: set[Tenure] = set()  # those that have to look again where their log ends
        self.look: Callable[[], None] = _nothing
        self._tasks: set[asyncio.Task[None]] = set()

    def start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Run in the background; an exception is logged with its traceback when the work ends."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._finish)
        return task

    def _finish(self, task: "asyncio.Task[None]") -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("background work failed: %s", error, exc_info=error)

    async def settle(self) -> None:
        """Wait until nothing runs in the background."""
        while self._tasks:
            await asyncio.wait(self._tasks)

    async def know_ours(self) -> None:
        """Wait until it is known what is ours in the server's present history."""
        while self.returning is not None and not self.returning.done():
            await asyncio.wait([self.returning])

    def report_loss(self, name: str, first: int, end: int) -> None:
        """Records `first` <= offset < `end` of a log are gone: say so, and remember it."""
        log.error("%s: records were lost: offsets %d to %d, which had been stored", name, first, end - 1)
        self.losses.append(Loss(name, first, end, self.clock.wall()))


def _nothing() -> None:
    """There is nobody else."""
