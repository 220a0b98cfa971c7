"""One group with its timer and its storage. An answer goes out when the changes that it reveals are durable."""

import asyncio
from typing import Any, Protocol, TypeAlias

from korvet_fast.core.fair_queue import BackgroundPace
from korvet_fast.core.groups.budget import GROUP, GroupBudget
from korvet_fast.core.groups.classic.group import ClassicGroup
from korvet_fast.core.groups.classic.requests import JoinResult, SyncResult
from korvet_fast.core.groups.collaborators import GroupCollaborators
from korvet_fast.core.groups.committed_offsets import CommittedOffsets
from korvet_fast.core.groups.consumer.group import ConsumerGroup
from korvet_fast.core.groups.consumer.members import HeartbeatResult
from korvet_fast.core.groups.documents import AnyGroup, OffsetAndMetadata, TopicPartition, describe_group, group_key
from korvet_fast.core.groups.encoding import encode_paced
from korvet_fast.core.groups.store import CoordinatorFenced, GroupStore, error_of
from korvet_fast.core.groups.text.group import TextResult
from korvet_fast.core.groups.waiter import Waiter
from korvet_fast.errors import NONE, ChangeTooLarge, Errors, StoreError

LATE = 1.0  # seconds by which a timer may be late; beyond that the whole program stood still
_RATE = 4 << 20  # bytes a second of documents that a group has stored, about
_SMALL = 16 << 10  # bytes of a document that is stored at once

Answer: TypeAlias = JoinResult | SyncResult | HeartbeatResult | TextResult
Answers: TypeAlias = list[tuple[Waiter, Answer]]


class Owner(Protocol):
    """The owner of all runtimes. Both `fail` and `forget` call `GroupRuntime.end`."""

    @property
    def budget(self) -> GroupBudget:
        """The memory that all groups share."""

    def fail(self, runtime: "GroupRuntime", failure: CoordinatorFenced | StoreError) -> None:
        """Load the group again: its memory may differ from its documents."""

    def forget(self, runtime: "GroupRuntime") -> None:
        """Drop a group that was deleted, or that has nothing to keep."""


class GroupRuntime:
    """The waiters of the group are futures of its answers.

    `since`: wall time in ms when the group became empty. `generation`: the store's, as of when the group was loaded.
    """

    def __init__(
        self,
        given: GroupCollaborators,
        group_id: str,
        group: AnyGroup,
        since: int,
        offsets: CommittedOffsets,
        store: GroupStore,
        owner: Owner,
    ) -> None:
        self.id = group_id
        self.group = group
        self.since = since
        self.offsets = offsets
        self.store = store
        self.generation = given.generation.number
        self._given = given
        self._owner = owner
        self._unsaved = False  # the group has to be stored
        self._document: dict[str, Any] | None = None  # the values to store; None: taken when their turn comes
        self._answers_unsaved: Answers = []  # they wait for the next document
        self._answers_saving: Answers = []  # they wait for the document that is being stored
        self._saving: asyncio.Future[None] | None = None
        self._next_save = 0.0  # monotonic time: until then, changes wait for one another
        self._timer: asyncio.TimerHandle | None = None
        self._due = 0.0
        self._ended = False
        self._memory = 0  # bytes of members and offsets, as counted by the budget
        owner.budget.used += GROUP
        self._count_memory()
        self._set_timer()

    @property
    def is_stored(self) -> bool:
        """Whether the registry has the group's document, or is about to get it."""
        return self._saving is not None or group_key(self.id) in self.store.known

    @property
    def is_vacant(self) -> bool:
        """Whether the group has neither members nor offsets."""
        return not (self.group.in_use or self.offsets.stored) and self.offsets.is_idle

    def forget_if_vacant(self) -> None:
        """Drop the group if it has no members, no offsets, and no document in the registry."""
        if self.is_vacant and not self.is_stored:
            self._owner.forget(self)

    @property
    def last_generation(self) -> int:
        """The number that the generations of another protocol go on from: stored ones never fall."""
        group = self.group
        return max(group.epoch, group.revision) if isinstance(group, ConsumerGroup) else group.generation

    # -- answers -----------------------------------------------------------------------------------------------------

    def settle(self) -> None:
        """After each call of the group: store it if it has changed, give its answers, set the timer."""
        answers = self._take_answers()
        if self.group.changed and not self._ended:
            self.group.changed = False
            if isinstance(self.group, ConsumerGroup):
                self.group.revision += 1
                self.group.count_memory()
                self._count_memory()
            if self.group.is_empty:
                self.since = self._given.clock.wall()
            self._unsaved = True
            # A classic group passes through states that are not stored, so the present values are noted. The others can
            # be stored at any time; their documents are large and many, so the changes made until then share one.
            classic = isinstance(self.group, ClassicGroup)
            self._document = describe_group(self.group, self.since) if classic else None
        if not isinstance(self.group, ConsumerGroup):  # its memory may change without a change to store
            self._count_memory()
        if not self._unsaved and self._saving is None:
            _give(answers)
        else:
            self._answers_unsaved += answers
            if self._saving is None:
                self._saving = asyncio.get_running_loop().create_future()
                self._given.tasks.start(self._save(self._saving))
        self._set_timer()
        self.forget_if_vacant()

    def settle_join(self, group: AnyGroup) -> None:
        """After a join of `group`: the present one, or a new one of another protocol in place of one without members.

        A new group in which nobody is was refused the join: its answer goes out, and the present group stays.
        """
        if group is not self.group and group.in_use:
            assert self.group.is_empty
            if self._unsaved and self._document is None:
                self._document = describe_group(self.group, self.since)
            self.group = group
        elif group is not self.group:
            _give([*group.answers])
        self.settle()

    def _count_memory(self) -> None:
        """Have the budget count the memory that the group takes now."""
        memory = self.group.memory + self.offsets.memory
        if memory != self._memory and not self._ended:
            self._owner.budget.used += memory - self._memory
            self._memory = memory

    def _take_answers(self) -> Answers:
        taken: Answers = [*self.group.answers]
        self.group.answers.clear()
        return taken

    async def _save(self, done: "asyncio.Future[None]") -> None:
        try:
            while self._unsaved:
                await self._gather_changes()
                # Changes that come while this document is being stored are part of the next one.
                values, self._unsaved = self._document or describe_group(self.group, self.since), False
                self._document = None
                self._answers_saving, self._answers_unsaved = self._answers_unsaved, []
                # A member that learns of this generation must see all offsets that were committed in the former one.
                await self.offsets.wait_until_idle()
                document = await encode_paced(values, BackgroundPace())
                await self.store.write({group_key(self.id): document})
                if len(document) > _SMALL:
                    self._next_save = self._given.clock.monotonic() + len(document) / _RATE
                self._tell(self._answers_saving)
            self._saving = None
            self._tell(self._answers_unsaved)
        except (CoordinatorFenced, StoreError) as failure:
            self._saving = None
            self._owner.fail(self, failure)
        finally:
            done.set_result(None)

    async def _gather_changes(self) -> None:
        """A large document is not stored for each of many members that join: those of a moment share one."""
        if self._next_save and not isinstance(self.group, ClassicGroup):  # which waits for its members anyway
            wait = self._next_save - self._given.clock.monotonic()
            if wait > 0:
                await self._given.clock.sleep(wait)

    def _tell(self, answers: Answers) -> None:
        told, answers[:] = list(answers), []
        _give(told)

    def end(self, error: Errors) -> None:
        """End this runtime: all requests that wait get the error."""
        if not self._ended:
            self._owner.budget.used -= GROUP + self._memory
        self._ended = True
        if self._timer is not None:
            self._timer.cancel()
        for waiting in (self._answers_saving, self._answers_unsaved):
            waiting[:] = [(waiter, answer.refuse(error)) for waiter, answer in waiting]
            self._tell(waiting)
        if isinstance(self.group, ClassicGroup):
            self.group.waiters.refuse_all(self.group.members, error)
        _give(self._take_answers())

    def withdraw(self, waiter: Waiter) -> None:
        """Give this answer now: its request cannot wait any longer."""
        if isinstance(self.group, ClassicGroup):  # no request to a group of another protocol waits for other members
            self.group.withdraw(waiter, self._given.clock.monotonic())
            self.settle()

    # -- time --------------------------------------------------------------------------------------------------------

    def tick(self) -> None:
        """Do the work that is due."""
        self.group.tick(self._given.clock.monotonic())
        self.settle()

    def _set_timer(self) -> None:
        """Set the timer for the next work. It may go off too early."""
        due = self.group.deadline.next()
        if due is None or self._ended or (self._timer is not None and self._due <= due):
            return
        if self._timer is not None:
            self._timer.cancel()
        self._due = due
        wait = max(0.0, due - self._given.clock.monotonic()) + 0.002  # uvloop counts in whole milliseconds
        self._timer = asyncio.get_running_loop().call_later(wait, self._ring)

    def _ring(self) -> None:
        assert self._timer is not None
        late = asyncio.get_running_loop().time() - self._timer.when()
        self._timer = None
        self.wake(late)

    def wake(self, late: float) -> None:
        """Do the work that is due. `late`: seconds by which the timer went off too late."""
        if late > LATE:
            text = f"group {self.id}: this program stood still for {late:.1f} s; its members get as much more time"
            self._given.log.warn("stood still", text)
            self.group.extend_deadlines(late)
        self.tick()

    # -- offsets -----------------------------------------------------------------------------------------------------

    async def commit(self, changes: dict[TopicPartition, OffsetAndMetadata | None]) -> Errors:
        """Commit offsets, or (None) remove them; the error. Durable on return."""
        more = self.offsets.growth(changes)
        if more > 0 and (error := self._owner.budget.refuse(self.offsets.memory, more)):
            return Errors.INVALID_COMMIT_OFFSET_SIZE if error == Errors.GROUP_MAX_SIZE_REACHED else error
        try:
            await self.offsets.put(changes)
        except (CoordinatorFenced, StoreError) as failure:
            self._owner.fail(self, failure)
            # Kafka's error for a batch of commits that its log refuses for its size (GroupMetadataManager.scala).
            return Errors.INVALID_COMMIT_OFFSET_SIZE if isinstance(failure, ChangeTooLarge) else error_of(failure)
        if more:
            self._count_memory()
        return NONE

    async def delete(self) -> Errors:
        """Remove the group and all its offsets; the error if the group is in use, or the store fails."""
        if error := self.group.delete(self._given.clock.monotonic()):
            return error
        self.group.changed = False
        try:
            if self._saving is not None:
                await asyncio.shield(self._saving)
            await self.offsets.wait_until_idle()
            await self.store.write(dict.fromkeys(list(self.store.known)))
        except (CoordinatorFenced, StoreError) as failure:
            self._owner.fail(self, failure)
            return error_of(failure)
        self.offsets.forget()
        self._owner.forget(self)
        return NONE


def _give(answers: Answers) -> None:
    for waiter, answer in answers:
        assert isinstance(waiter, asyncio.Future)
        if not waiter.done():
            waiter.set_result(answer)
