"""The joins and syncs of a group that wait for their answers."""

from collections.abc import Iterable

from korvet_fast.core.groups.classic.members import ClassicMember
from korvet_fast.core.groups.classic.requests import JoinResult, SyncResult, refuse_sync
from korvet_fast.core.groups.waiter import Waiter
from korvet_fast.errors import Errors


class Waiters:
    """The requests that wait, and the `answers` to give. `joins`: how many joins wait."""

    __slots__ = ("_member_of", "answers", "joins")

    def __init__(self) -> None:
        self.answers: list[tuple[Waiter, JoinResult | SyncResult]] = []
        self.joins = 0
        self._member_of: dict[Waiter, ClassicMember] = {}  # a broker may give up thousands at once: no search

    def find(self, waiter: Waiter) -> ClassicMember | None:
        """The member whose request waits here; None if the request was answered."""
        return self._member_of.get(waiter)

    def add_join(self, member: ClassicMember, waiter: Waiter) -> None:
        """A member's join waits. An earlier request of the member is refused: its client waits for this one."""
        self.refuse(member, Errors.REBALANCE_IN_PROGRESS)
        member.joining = waiter
        self._member_of[waiter] = member
        self.joins += 1

    def add_sync(self, member: ClassicMember, waiter: Waiter) -> None:
        """A member's sync waits. An earlier request of the member is refused: its client waits for this one."""
        self.refuse(member, Errors.REBALANCE_IN_PROGRESS)
        member.syncing = waiter
        self._member_of[waiter] = member

    def answer(self, waiter: Waiter, result: JoinResult | SyncResult) -> None:
        """Answer a request that did not wait."""
        self.answers.append((waiter, result))

    def answer_join(self, member: ClassicMember, result: JoinResult) -> None:
        """Answer the waiting join of a member."""
        self.answers.append((member.joining, result))
        self._member_of.pop(member.joining, None)
        member.joining = None
        self.joins -= 1

    def answer_sync(self, member: ClassicMember, result: SyncResult) -> None:
        """Answer the waiting sync of a member."""
        self.answers.append((member.syncing, result))
        self._member_of.pop(member.syncing, None)
        member.syncing = None

    def refuse(self, member: ClassicMember, error: Errors) -> None:
        """Answer the waiting requests of this member with an error."""
        if member.joining is not None:
            self.answer_join(member, JoinResult(error, member.id if member.known else ""))
        if member.syncing is not None:
            self.answer_sync(member, refuse_sync(error))

    def refuse_all(self, members: Iterable[ClassicMember], error: Errors) -> None:
        """Answer the waiting requests of these members with an error."""
        for member in members:
            self.refuse(member, error)
