"""Leading a partition: taking its log over, finding its end again after a failure, and letting go.

In doubt: an append failed, or the server's history broke, so nothing is appended until the store has said where the
log ends.
"""

import asyncio
import logging

from korvet_fast.core.epochs import Epoch
from korvet_fast.core.history import History
from korvet_fast.core.host import Host
from korvet_fast.core.topic_config import TopicConfig
from korvet_fast.core.watermark import Watermark
from korvet_fast.errors import KorvetError, OutcomeUnknown, StoreError, TooFewCopies
from korvet_fast.store.interface import Bounds, Detached, Stale

logger = logging.getLogger(__name__)

_NOT_LED = "NOT_LEADER_OR_FOLLOWER"


class Tenure(History):
    """What `History` says of it, and whether this broker leads it."""

    __slots__ = ("_doubts", "_recovery", "_refusal", "_reported", "_waits")

    def __init__(self, host: Host, topic: str, index: int, config: TopicConfig) -> None:
        super().__init__(host, topic, index, config, Watermark(self._doubt))
        # Why nothing is appended, as a fault and a sentence; None where all is well.
        self._refusal: tuple[str, str] | None = (_NOT_LED, f"{self.log} is not led here")
        self._doubts = 0  # counts the reasons to ask the store
        self._reported = ""
        self._recovery: asyncio.Task[None] | None = None
        self._waits = False  # it has not asked the store yet

    # -- taking over and letting go ------------------------------------------------------------------------------

    async def open(self, saved: bytes | None) -> None:
        """Take the log over: no other program's appends are taken from now on. Raises `StoreError`.

        `saved`: what the registry has of the state.
        """
        await self._take_over(saved)
        self._begin()

    def _begin(self) -> None:
        if not self._deleted:  # meanwhile
            self.led = True
            self._refusal = None
            self._mark.settle()  # what failed while it was not led yet

    async def lead(self) -> None:
        """Take the log over as `open` does; if the store fails, try again whenever somebody asks."""
        self._held = -1
        try:
            await self.open(await self._host.store.load(self._state.key))
        except StoreError as error:
            self._begin()
            self._doubt(error)

    def resign(self, why: str) -> None:
        """Lead no more; clients are told NOT_LEADER_OR_FOLLOWER. What is under way is left to its end."""
        if self._forked:
            text = "%s: given up before it was known whether all is there still that had been stored below offset %d"
            logger.error(text, self.log, self._stored)
        self._let_go((_NOT_LED, why))

    def leave(self) -> None:
        """The topic is gone: clients are told UNKNOWN_TOPIC_OR_PARTITION."""
        self._deleted = True
        self._let_go(("UNKNOWN_TOPIC_OR_PARTITION", f"{self.log} was deleted"))

    def _let_go(self, refusal: tuple[str, str]) -> None:
        self.led = False
        self._refusal = refusal
        self._host.doubtful.discard(self)
        self._host.version += 1
        self._mark.forget_rounds()
        self.unfollow()
        self.wake()

    async def drop(self) -> None:
        """Leave, and remove everything."""
        self.leave()
        # What is ours may not be known before the change is over that this is a part of.
        works = (self._saving, None if self._waits else self._recovery)
        running = [task for task in works if task is not None and not task.done()]
        if running:
            await asyncio.wait(running)
        await self._host.store.drop(self.log)
        await self._state.drop(self._host.store)

    def epoch_end(self, epoch: int) -> Epoch:
        """(epoch, end offset) of the largest leader epoch up to `epoch`; (-1, -1) if it is newer than the present.

        Raises `KorvetError` NOT_LEADER_OR_FOLLOWER while the log is being taken over anew: its history is not known
        yet, and a client would take that for a loss.
        """
        if self._refusal is not None and self._refusal[0] == _NOT_LED:
            self._refuse()
        if self._state.epochs.last < self.leader_epoch or self.leader_epoch < 0:
            raise KorvetError(_NOT_LED, f"{self.log} is being taken over")
        return self._state.epochs.find_end(epoch, self.start, self.end)

    async def confirm(self) -> None:
        """Make sure that what is known here is so for everybody, before a client is told what it cannot take back.

        A broker that is cut off with a former master knows one history, and whoever leads by now another. It finds no
        replicas, if the topic asks for them. Raises `KorvetError` NOT_LEADER_OR_FOLLOWER then.
        """
        sync, copies = self.config.sync, self.config.copies
        if copies == 1:
            return
        try:
            await self._host.store.append(self.log, (), self.end, sync=sync, copies=copies).durable
        except (Stale, StoreError) as failure:
            why = self.explain(failure).detail
            raise KorvetError(_NOT_LED, f"it is not certain that {self.log} is led here: {why}") from None

    # -- doubt ---------------------------------------------------------------------------------------------------

    def explain(self, failure: BaseException) -> KorvetError:
        """What a client is told of an append that ended so."""
        if isinstance(failure, Stale):
            if failure.fenced or self.single:
                return KorvetError(_NOT_LED, f"{self.log} was written to, or taken over, by another program")
            return StoreError(f"{self.log} ends at {failure.end}, not where it was left: another writer was here")
        if isinstance(failure, StoreError) and not isinstance(failure, OutcomeUnknown):
            forked = isinstance(failure, Detached) or (self._refusal is not None and self._refusal[0] == _NOT_LED)
            return KorvetError(_NOT_LED, failure.detail) if forked else failure
        if isinstance(failure, KorvetError):
            return failure
        raise failure

    def fork(self, why: str) -> None:
        """The server's history broke: the log has to be taken over anew (`retry`) before anything is appended."""
        if self.led:
            self._forked = True
            self._reported = why  # by the broker, for all its partitions
            self._ask((_NOT_LED, why))

    def _doubt(self, failure: BaseException) -> KorvetError:
        """An append failed, so the store has to be asked before the next one; the error to raise."""
        error = self.explain(failure)
        if not self.led:
            return error  # what was under way ends with our time
        if isinstance(failure, Stale) and failure.fenced:
            logger.warning("%s: another broker has taken it over", self.log)
            self.resign(f"another broker has taken {self.log} over")
            self._host.look()
            return error
        if isinstance(error, StoreError):
            self._report(error.detail)
        self._ask((_name_refusal(error), error.detail))
        self.retry()
        return error

    def _ask(self, refusal: tuple[str, str]) -> None:
        self._doubts += 1
        if self._refusal is None or self._refusal[0] != _NOT_LED:
            self._refusal = refusal
        self._host.doubtful.add(self)

    def _report(self, reason: str) -> None:
        if reason != self._reported:
            logger.error("%s", reason if reason.startswith(self.log) else f"{self.log}: {reason}")
            self._reported = reason

    def retry(self) -> "asyncio.Task[None]":
        """Ask the store where the log ends, unless that is being done."""
        if self._recovery is None or self._recovery.done():
            self._recovery = self._host.start(self._recover())
        return self._recovery

    def _refuse(self) -> None:
        assert self._refusal is not None
        if self in self._host.doubtful:
            self.retry()
        name, detail = self._refusal
        raise StoreError(detail) if name == "KAFKA_STORAGE_ERROR" else KorvetError(name, detail)

    async def _recover(self) -> None:
        while self.led:
            self._waits = True
            await self._host.know_ours()
            self._waits = False
            if not self.led or self._refusal is None:
                return
            doubts = self._doubts
            try:
                await self._look_again()
            except StoreError as error:
                self._report(error.detail)
                if isinstance(error, TooFewCopies):  # whatever it was before: it is led here
                    self._refusal = (_name_refusal(error), error.detail)
                return
            except Stale as stale:
                self._doubt(stale)
                return
            if self.led and doubts == self._doubts:
                self._host.doubtful.discard(self)
                self._refusal = None
                self._reported = ""

    async def _look_again(self) -> None:
        """Stand where the log ends, with all of it durable. Raises `StoreError`; all is in doubt then as before."""
        mark, state, store = self._mark, self._state, self._host.store
        await mark.wait()
        mark.forget_rounds()
        if self.leader_epoch < 0:
            await self._take_over(await store.load(state.key))
        elif self._held == self._host.forks and self.end <= max(mark.stored, self._gap[0]):
            await self._keep()
        else:
            # What was not acknowledged may be in the log or not: the log says.
            stored, known = self._stored, min(self.high_watermark, self.top)
            state.producers.forget(known)
            forks = self._host.forks
            await self._hold(await self._attach(mark.stored), stored, known)
            self._held = forks
        await mark.wait()
        if self.high_watermark < self.end:
            raise StoreError(f"what {self.log} holds above offset {self.high_watermark} cannot be made durable")

    async def _keep(self) -> None:
        """All that was appended is in the log: nothing is missing but that it is kept as it should be. `StoreError`."""
        if (why := self._host.store.refusal(self.log, self.config.sync, self.config.copies)) is not None:
            raise TooFewCopies(why)
        held, self._held = self._held, -1
        durable = self._ask_durable()  # fails if the log is not ours any more, or ends elsewhere
        self._held = held
        await asyncio.wait([durable])
        durable.result()

    def _see(self, bounds: Bounds) -> None:
        if self._refusal is None:  # in doubt, the bounds are asked for in their turn
            super()._see(bounds)


def _name_refusal(error: KorvetError) -> str:
    """What is answered to those who come after this, and of whom nothing is appended."""
    if isinstance(error, TooFewCopies):
        return "NOT_ENOUGH_REPLICAS"
    return "KAFKA_STORAGE_ERROR" if isinstance(error, StoreError) else error.fault.name
