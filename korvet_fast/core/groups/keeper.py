"""One group with time and storage: whatever reveals a change of it goes out when the change is durable."""

import asyncio
import logging
from typing import Protocol, TypeAlias

from korvet_fast.core.groups.consumer.group import ConsumerGroup
from korvet_fast.core.groups.consumer.members import Beaten
from korvet_fast.core.groups.documents import AnyGroup, Commit, Place, group_key, pack_group
from korvet_fast.core.groups.group import Group
from korvet_fast.core.groups.members import Joined, Synced, Ticket, refuse_sync
from korvet_fast.core.groups.offsets import Offsets
from korvet_fast.core.groups.records import Moved, Records
from korvet_fast.core.host import Host
from korvet_fast.errors import StoreError

log = logging.getLogger(__name__)

LATE = 1.0  # seconds by which a timer may be late; beyond that the whole program stood still

Answer: TypeAlias = Joined | Synced | Beaten
Answers: TypeAlias = list[tuple[Ticket, Answer]]


class Owner(Protocol):
    """Whoever has the keeper; both end in `Keeper.end`."""

    def fail(self, keeper: "Keeper", failure: Moved | StoreError) -> None:
        """What is in memory may not be what is stored."""

    def forget(self, keeper: "Keeper") -> None:
        """There is nothing to keep."""


class Keeper:
    """The tickets of the group are futures of the answers. Faults are names of `korvet_fast.errors`, "" for none."""

    def __init__(
        self,
        host: Host,
        group_id: str,
        group: AnyGroup,
        since: int,
        offsets: Offsets,
        records: Records,
        owner: Owner,
    ) -> None:
        self.id = group_id
        self.group = group
        self.since = since  # wall time in ms when it became empty
        self.offsets = offsets
        self.records = records
        self.forks = host.forks  # as of when it was loaded
        self._host = host
        self._owner = owner
        self._news = False  # the group is to be stored
        self._document: bytes | None = None  # as this; None: as it is when its turn comes
        self._held: Answers = []  # until it is
        self._telling: Answers = []  # until what is being stored is
        self._saving: asyncio.Future[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._due = 0.0
        self._ended = False
        self._mind()

    @property
    def stored(self) -> bool:
        """Whether the registry knows the group itself, or will."""
        return self._saving is not None or group_key(self.id) in self.records.known

    @property
    def vacant(self) -> bool:
        """Whether it has neither members nor commits."""
        return not (self.group.in_use or self.offsets.stored) and self.offsets.idle

    def leave_if_vacant(self) -> None:
        """Nobody would miss it, and the registry does not know it: it need not be here."""
        if self.vacant and not self.stored:
            self._owner.forget(self)

    def turn(self, group: AnyGroup) -> None:
        """Nobody is in the group: it is one of the other protocol from now on."""
        assert self.group.is_empty
        if self._news and self._document is None:
            self._document = pack_group(self.group, self.since)
        self.group = group

    # -- answers -----------------------------------------------------------------------------------------------------

    def settle(self) -> None:
        """After anything that was done to the group: store it if it changed, give the answers, mind the time."""
        answers = self._take_answers()
        if self.group.changed and not self._ended:
            self.group.changed = False
            if isinstance(self.group, ConsumerGroup):
                self.group.revision += 1
            if self.group.is_empty:
                self.since = self._host.clock.wall()
            self._news = True
            # Between two of its states that are stored a classic group is in others. Those of consumer groups are all
            # alike, large and many: what happens before its turn comes goes into one document.
            self._document = pack_group(self.group, self.since) if isinstance(self.group, Group) else None
        if not self._news and self._saving is None:
            _give(answers)
        else:
            self._held += answers
            if self._saving is None:
                self._saving = asyncio.get_running_loop().create_future()
                self._host.start(self._save(self._saving))
        self._mind()
        self.leave_if_vacant()

    def _take_answers(self) -> Answers:
        taken: Answers = [*self.group.answers]
        self.group.answers.clear()
        return taken

    async def _save(self, done: "asyncio.Future[None]") -> None:
        try:
            while self._news:
                # What happens while this is being stored belongs to the next document.
                document, self._news = self._document or pack_group(self.group, self.since), False
                self._telling, self._held = self._held, []
                # Commits of the former generation are seen by whoever learns of this one.
                await self.offsets.rest()
                await self.records.write({group_key(self.id): document})
                self._tell(self._telling)
            self._saving = None
            self._tell(self._held)
        except (Moved, StoreError) as failure:
            self._saving = None
            self._owner.fail(self, failure)
        finally:
            done.set_result(None)

    def _tell(self, answers: Answers) -> None:
        told, answers[:] = list(answers), []
        _give(told)

    def end(self, fault: str) -> None:
        """Nothing is done here any more: whoever waits gets the fault."""
        self._ended = True
        if self._timer is not None:
            self._timer.cancel()
        for waiting in (self._telling, self._held):
            waiting[:] = [(ticket, _refuse(answer, fault)) for ticket, answer in waiting]
            self._tell(waiting)
        if isinstance(self.group, Group):
            self.group.abandon(fault)
        _give(self._take_answers())

    def withdraw(self, ticket: Ticket) -> None:
        """Whoever waits for this answer cannot wait any longer."""
        if isinstance(self.group, Group):  # where else nobody waits for the others
            self.group.withdraw(ticket, self._host.clock.monotonic())
            self.settle()

    # -- time --------------------------------------------------------------------------------------------------------

    def tick(self) -> None:
        """Do what the time has come for."""
        self.group.tick(self._host.clock.monotonic())
        self.settle()

    def _mind(self) -> None:
        """Have the timer go off when something may have to be done; it may go off too early."""
        due = self.group.deadline()
        if due is None or self._ended or (self._timer is not None and self._due <= due):
            return
        if self._timer is not None:
            self._timer.cancel()
        self._due = due
        wait = max(0.0, due - self._host.clock.monotonic()) + 0.002  # uvloop counts in whole milliseconds
        self._timer = asyncio.get_running_loop().call_later(wait, self._ring)

    def _ring(self) -> None:
        assert self._timer is not None
        late = asyncio.get_running_loop().time() - self._timer.when()
        self._timer = None
        self.wake(late)

    def wake(self, late: float) -> None:
        """It is time to look, or was so many seconds ago."""
        if late > LATE:
            log.warning("group %s: this program stood still for %.1f s; its members get them as well", self.id, late)
            self.group.forgive(late)
        self.tick()

    # -- commits -----------------------------------------------------------------------------------------------------

    async def commit(self, changes: dict[Place, Commit | None]) -> str:
        """Set commits, or remove them; the fault. Durable on return."""
        done = self.offsets.put(changes)
        try:
            await asyncio.shield(done)
        except (Moved, StoreError) as failure:
            self._owner.fail(self, failure)
            return "NOT_COORDINATOR" if isinstance(failure, Moved) else "COORDINATOR_NOT_AVAILABLE"
        return ""

    async def erase(self) -> str:
        """Remove the group and all its commits; the fault if it is in use, or the store fails."""
        if fault := self.group.delete(self._host.clock.monotonic()):
            return fault
        self.group.changed = False
        try:
            if self._saving is not None:
                await asyncio.shield(self._saving)
            await self.offsets.rest()
            await self.records.write(dict.fromkeys(list(self.records.known)))
        except (Moved, StoreError) as failure:
            self._owner.fail(self, failure)
            return "NOT_COORDINATOR" if isinstance(failure, Moved) else "COORDINATOR_NOT_AVAILABLE"
        self.offsets.forget()
        self._owner.forget(self)
        return ""


def _give(answers: Answers) -> None:
    for ticket, answer in answers:
        assert isinstance(ticket, asyncio.Future)
        if not ticket.done():
            ticket.set_result(answer)


def _refuse(answer: Answer, fault: str) -> Answer:
    if isinstance(answer, Beaten):
        return Beaten(fault)
    return Joined(fault, answer.member_id) if isinstance(answer, Joined) else refuse_sync(fault)
