"""The joins and syncs that wait for their answers."""

from collections.abc import Iterable

from korvet_fast.core.groups.classic.members import ClassicMember
from korvet_fast.core.groups.classic.requests import JoinResult, SyncResult, refuse_sync
from korvet_fast.core.groups.waiter import Waiter
from korvet_fast.errors import Errors


class Waiters:
    """The members whose requests wait, and the answers to be given. `joins`: how many members' joins wait."""

    __slots__ = ("_member_of", "answers", "joins")

    def __init__(self) -> None:
        self.answers: list[tuple[Waiter, JoinResult | SyncResult]] = []
        self.joins = 0
        self._member_of: dict[Waiter, ClassicMember] = {}  # so that a broker can give up many waiters at a time

    def find(self, waiter: Waiter) -> ClassicMember | None:
        """The member whose request waits here; None if it has its answer."""
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
        """Answer the join of a member, which waits."""
        self.answers.append((member.joining, result))
        self._member_of.pop(member.joining, None)
        member.joining = None
        self.joins -= 1

    def answer_sync(self, member: ClassicMember, result: SyncResult) -> None:
        """Answer the sync of a member, which waits."""
        self.answers.append((member.syncing, result))
        self._member_of.pop(member.syncing, None)
        member.syncing = None

    def refuse(self, member: ClassicMember, error: Errors) -> None:
        """Answer whatever request of this member waits with an error."""
        if member.joining is not None:
            self.answer_join(member, JoinResult(error, member.id if member.known else ""))
        if member.syncing is not None:
            self.answer_sync(member, refuse_sync(error))

    def refuse_all(self, members: Iterable[ClassicMember], error: Errors) -> None:
        """Answer all requests of these members that wait with an error."""
        for member in members:
            self.refuse(member, error)
