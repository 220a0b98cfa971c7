"""Leading a partition: acquiring its log, finding its end again after a failure, and giving it up.

`leadership.py` is the table of what each event means; `PartitionLeader` carries it out.
"""

import asyncio
import logging
import re
from collections.abc import Callable
from math import inf
from typing import NoReturn

from korvet_fast.core.partition.acquisition import LogAcquisition
from korvet_fast.core.partition.collaborators import PartitionCollaborators
from korvet_fast.core.partition.leadership import ERRORS, Act, Event, Leadership, LeadershipState, Operation
from korvet_fast.core.partition.log import PartitionLog
from korvet_fast.core.partition.snapshot import PartitionSnapshot
from korvet_fast.core.partition.snapshot_saver import SnapshotSaver
from korvet_fast.errors import Errors, KorvetError, OutcomeUnknown, StoreError, TooFewCopies
from korvet_fast.store.types import CannotLead, NotLeader, OffsetConflict

logger = logging.getLogger(__name__)

_NOT_LEADER = ERRORS[LeadershipState.NOT_LEADER]
_NUMBER = re.compile(r"\S*\d\S*")
_REPEATED = 10.0  # seconds after a recovery, until the same reason is logged again


class PartitionLeader:
    """This broker's work as the leader of a partition, or in order to become the leader."""

    __slots__ = (
        "_acquisition",
        "_asking",
        "_clock",
        "_given",
        "_leadership",
        "_log",
        "_on_failure",
        "_queue",
        "_recovery",
        "_reported",
        "_saver",
        "_snapshot",
        "_store",
    )

    def __init__(
        self,
        log: PartitionLog,
        leadership: Leadership,
        snapshot: PartitionSnapshot,
        saver: SnapshotSaver,
        on_failure: Callable[[BaseException], object],
        given: PartitionCollaborators,
    ) -> None:
        self._saver = saver
        self._log = log
        self._leadership = leadership
        self._snapshot = snapshot
        self._acquisition = LogAcquisition(log, leadership, snapshot, saver, given)
        self._on_failure = on_failure
        self._given = given
        self._store = given.store
        self._clock = given.clock
        self._queue = given.recovery_queue
        self._reported = ("", inf)  # the reason that was logged last, and until when it is not logged again
        self._recovery: asyncio.Task[None] | None = None
        self._asking = asyncio.Lock()  # held while the store is asked for the end of the log

    # -- acquiring and giving up ---------------------------------------------------------------------------------

    async def become_leader(self) -> None:
        """Acquire the log; if the store fails, lead nevertheless and ask it again whenever somebody needs the log.

        If an operator has to do something before (`CannotLead`), it does not lead.
        """
        if self._leadership.on(Event.ACQUIRE) is not Act.ASK_FOR_LOG:
            return
        steps, generation = self._leadership.steps, self._given.generation.number
        self._acquisition.forget()
        try:
            await self._acquisition.acquire(await self._store.load(self._snapshot.key))
        except CannotLead as failure:
            self._report(failure)
            if self._leadership.steps == steps:
                self.resign(failure.detail)
        except StoreError as failure:
            if self._leadership.steps == steps:
                self._leadership.on(Event.ACQUIRE_FAILED, failure.detail)
                self.fail(failure)
        except BaseException:
            self.resign(f"{self._log.name} could not be acquired")
            raise
        else:
            self._start(steps)
            if generation != self._given.generation.number and self._leadership.leads:
                self.change_history(f"the store's history broke while {self._log.name} was acquired")
                self.recover()

    async def acquire(self, saved: bytes | None) -> None:
        """Acquire the log. `saved`: what the registry has of the snapshot. Raises `StoreError`: then nobody leads."""
        if self._leadership.on(Event.ACQUIRE) is not Act.ASK_FOR_LOG:
            return
        steps = self._leadership.steps
        try:
            await self._acquisition.acquire(saved)
        except BaseException:
            self.resign(f"{self._log.name} could not be acquired")
            raise
        self._start(steps)

    def _start(self, steps: int) -> None:
        if self._leadership.steps == steps and self._leadership.on(Event.ACQUIRED) is Act.START:
            self._log.high_watermark.settle()  # reports the appends that failed while the log was being acquired

    def resign(self, why: str) -> None:
        """Stop leading: clients are told NOT_LEADER_OR_FOLLOWER. Appends under way go on to their end."""
        self._end_leadership(Event.RESIGNED, why)

    def _end_leadership(self, event: Event, why: str) -> None:
        log = self._log
        if self._leadership.leads and self._acquisition.is_history_unknown:
            text = (
                "%s: leadership given up before this broker knew whether all records stored below offset %d are there"
            )
            logger.error(text, log.name, log.acknowledged_end)
        self._take_step(event, why)

    def delete(self) -> None:
        """The topic is gone: clients are told UNKNOWN_TOPIC_OR_PARTITION."""
        self._take_step(Event.DELETED, f"{self._log.name} was deleted")

    def _take_step(self, event: Event, why: str) -> None:
        if self._leadership.on(event, why) is Act.LET_GO:
            log = self._log
            self._queue.discard(self)
            self._given.metadata.advance()
            log.high_watermark.forget_flushes()
            self._snapshot.producers.clear()
            log.unsubscribe()
            log.high_watermark.wake()

    async def drop(self) -> None:
        """Delete the partition, and remove its log and its snapshot from the store. Raises `StoreError`."""
        self.delete()
        await self._saver.wait()
        async with self._asking:
            await self._store.drop(self._log.name)
            await self._snapshot.drop(self._store)

    async def verify_leadership(self) -> None:
        """Make sure that this broker still leads, before a client is told something that cannot be taken back.

        A broker that is cut off together with a former master of the store knows one history, and the present leader
        another. Where the topic asks for copies, the broker that is cut off finds none. Where brokers copy files, the
        copies of what is durable are not asked for again, but the metadata log is. Without copies, the store is asked
        who leads: another one may have taken over a moment ago. Raises `KorvetError` NOT_LEADER_OR_FOLLOWER then.
        """
        log = self._log
        sync, copies = log.config.sync, log.config.copies
        try:
            if copies > 1:
                await log.opened.append((), log.end, sync=sync, copies=copies).durable
            await self._verify_owner()
        except (OffsetConflict, StoreError) as failure:
            why = self.explain(failure).detail
            raise KorvetError(_NOT_LEADER, f"it is not certain that this broker leads {log.name}: {why}") from None

    async def verify_end(self) -> None:
        """Make sure that nobody else leads, before a client is told that an offset lies above the end of the log.

        A former leader that does not know yet of the present one knows an old end, and the client would begin anew.
        Raises `StoreError`, or `KorvetError` NOT_LEADER_OR_FOLLOWER.
        """
        if self._log.config.copies == 1:
            await self._verify_owner()
        else:
            await self.verify_leadership()

    async def _verify_owner(self) -> None:
        """Ask the store who leads. Raises `StoreError`, or `KorvetError` NOT_LEADER_OR_FOLLOWER."""
        shared = self._store.shared
        if shared is not None and not await shared.is_leader(self._log.name):
            self._given.on_fenced()
            raise KorvetError(_NOT_LEADER, f"{self._log.name} was taken over by another broker")

    # -- failures ------------------------------------------------------------------------------------------------

    def explain(self, failure: BaseException) -> KorvetError:
        """The error that a client gets for an append that ended with `failure`. Raises `failure` if it is a bug."""
        name = self._log.name
        unknown = isinstance(failure, OutcomeUnknown)
        if (
            isinstance(failure, OffsetConflict | StoreError)
            and not unknown
            and self._leadership.state is LeadershipState.DELETED
        ):
            return KorvetError(ERRORS[LeadershipState.DELETED], f"{name} was deleted before this was stored")
        if isinstance(failure, OffsetConflict):
            if failure.fenced or self._log.entries_layout:
                return KorvetError(_NOT_LEADER, f"{name} was written to, or taken over, by another program")
            return StoreError(f"{name} ends at {failure.end}, not where it was left: another writer was here")
        if isinstance(failure, StoreError) and not unknown:
            refusal = self._leadership.refusal
            disowned = isinstance(failure, NotLeader) or (refusal is not None and refusal.error == _NOT_LEADER)
            return KorvetError(_NOT_LEADER, failure.detail) if disowned else failure
        if isinstance(failure, KorvetError):
            return failure
        raise failure

    def refuse(self) -> NoReturn:
        """Raise why no append is taken: `KorvetError` or `StoreError`. Has the store asked for the end of the log."""
        assert self._leadership.refusal is not None
        if self in self._queue:
            self.recover()
        name, detail = self._leadership.refusal
        raise StoreError(detail) if name == ERRORS[LeadershipState.RECOVERING] else KorvetError(name, detail)

    def refuse_append(self, acks: int) -> None:
        """As `refuse`, unless an append may go on that asks for no copies."""
        if acks == -1 or not self._leadership.may(Operation.APPEND_HERE):
            self.refuse()

    def change_history(self, why: str) -> None:
        """The store's history changed: the log has to be acquired anew (`recover`) before anything is appended."""
        if self._leadership.on(Event.HISTORY_CHANGED, why) is Act.QUEUE:
            self._reported = (why, inf)  # the broker has logged it for all its partitions
            self._queue.add(self)

    def fail(self, failure: BaseException) -> KorvetError:
        """An append failed, so the store has to be asked before the next one. Returns the error to raise."""
        error = self.explain(failure)
        if not self._leadership.leads:
            return error  # the append was under way when this broker stopped leading
        if isinstance(failure, OffsetConflict) and failure.fenced:
            if failure.given_up:
                self._given.log.tell("given up", f"{self._log.name}: given up to another broker, which asked for it")
            else:
                text = f"{self._log.name}: another broker has taken it over, or its state is gone from the store"
                self._given.log.warn("taken over", text)
            self._end_leadership(Event.FENCED, f"another broker has taken {self._log.name} over")
            self._given.on_fenced()
            return error
        if isinstance(error, StoreError):
            self._report(error)
        if isinstance(failure, TooFewCopies) and self._leadership.knows_end:
            # What failed is stored. The queue tries again to have it copied, or the next produce with acks=all does.
            self._leadership.on(Event.COPIES_MISSING, error.detail)
            self._queue.add(self)
            return error
        name = _name_error(error)
        self._leadership.on(Event.DISOWNED if name == _NOT_LEADER else Event.APPEND_FAILED, error.detail, name)
        self._queue.add(self)
        self.recover()
        return error

    def _report(self, error: StoreError) -> None:
        """Log the reason once, unless the store has; again if the reason changes, or some time after a recovery.

        On a full disk each append fails, and each recovery works. Of all partitions with one reason, one logs it in a
        while.
        """
        if error.logged:
            return
        reason = error.detail
        before, until = self._reported
        if reason != before or self._clock.monotonic() >= until:
            text = reason if reason.startswith(self._log.name) else f"{self._log.name}: {reason}"
            self._given.log.fail(f"append {_generalise(reason)}", text)
            self._reported = (reason, inf)

    def tell_refusal(self, why: str) -> None:
        """Log why acks=all is refused; one line in a while for all partitions together."""
        self._given.log.warn("copies", f"{self._log.name}: acks=all is refused: {why}")

    def tell_timestamp(self, why: str) -> None:
        """Log why a batch's timestamp is refused; one line in a while for all partitions together."""
        self._given.log.warn(
            "timestamp",
            f"{self._log.name}: a batch is refused, its timestamp {why} (message.timestamp.after.max.ms). Where many "
            "producers are refused, look at this machine's clock",
        )

    # -- recovery ------------------------------------------------------------------------------------------------

    def recover(self) -> "asyncio.Task[None]":
        """Ask the store where the log ends, unless that is being done."""
        if self._recovery is None or self._recovery.done():
            self._recovery = self._given.tasks.start(self._recover())
        return self._recovery

    async def _recover(self) -> None:
        leadership = self._leadership
        while leadership.leads:
            await self._queue.pass_gate()
            async with self._asking:
                if not leadership.leads or leadership.refusal is None:
                    return
                steps, knows_end = leadership.steps, leadership.knows_end
                try:
                    await (self._acquisition.flush() if knows_end else self._acquisition.recover())
                except StoreError as error:
                    self._report(error)
                    if isinstance(error, CannotLead):
                        self.resign(error.detail)
                    elif isinstance(error, TooFewCopies):
                        leadership.on(Event.COPIES_MISSING, error.detail)
                    elif knows_end:
                        leadership.on(Event.APPEND_FAILED, error.detail, _name_error(error))
                    return
                except OffsetConflict as conflict:
                    self._on_failure(conflict)
                    return
                if steps == leadership.steps:
                    leadership.on(Event.RECOVERED)
                    self._queue.discard(self)
                    reason, until = self._reported
                    self._reported = (reason, min(until, self._clock.monotonic() + _REPEATED))


def _generalise(reason: str) -> str:
    """The reason without names, numbers and addresses: the same for all partitions that have it."""
    return _NUMBER.sub("#", reason.rpartition(": ")[2])


def _name_error(error: KorvetError) -> Errors:
    """The error that later appends are answered with."""
    if isinstance(error, TooFewCopies):
        return Errors.NOT_ENOUGH_REPLICAS
    return ERRORS[LeadershipState.RECOVERING] if isinstance(error, StoreError) else error.error
