"""The classic protocol: JoinGroup, SyncGroup, Heartbeat and LeaveGroup."""

import asyncio
from collections import deque
from collections.abc import Iterable

from korvet_fast.config import Settings
from korvet_fast.core.clock import Clock
from korvet_fast.core.fair_queue import BackgroundPace
from korvet_fast.core.groups.classic.admission import PENDING
from korvet_fast.core.groups.classic.group import ClassicGroup
from korvet_fast.core.groups.classic.requests import JoinRequest, JoinResult, SyncRequest, SyncResult, refuse_sync
from korvet_fast.core.groups.config import GroupConfig
from korvet_fast.core.groups.consumer.group import ConsumerGroup
from korvet_fast.core.groups.partitions import CoordinatorPartitions
from korvet_fast.core.groups.runtime import GroupRuntime
from korvet_fast.core.groups.text.group import TextGroup
from korvet_fast.errors import NONE, Errors


class ClassicMembership:
    """Answers the requests of members of classic groups."""

    def __init__(
        self, clock: Clock, settings: Settings, config: GroupConfig, partitions: CoordinatorPartitions
    ) -> None:
        self._clock = clock
        self._config = config
        self._partitions = partitions
        self._runtimes = partitions.runtimes
        self._invited: deque[tuple[str, str]] = deque()  # group and member ids given out, the latest last
        self._min_session_timeout = settings.number("group.min.session.timeout.ms") / 1000
        self._max_session_timeout = settings.number("group.max.session.timeout.ms") / 1000

    def join(self, group_id: str, request: JoinRequest) -> "asyncio.Future[JoinResult]":
        """The answer may come only when all members have joined. Call `withdraw` if nobody waits for it any more."""
        answer: asyncio.Future[JoinResult] = asyncio.get_running_loop().create_future()
        error = self._partitions.refuse(group_id) or request.find_error()
        if not error and not self._min_session_timeout <= request.session_timeout <= self._max_session_timeout:
            error = Errors.INVALID_SESSION_TIMEOUT
        runtime = self._runtimes.get(group_id)
        if not error and runtime is None:
            error = Errors.UNKNOWN_MEMBER_ID if request.member_id else self._runtimes.refuse_new(group_id, joins=True)
        if error:
            answer.set_result(JoinResult(error, request.member_id))
            return answer
        runtime = runtime or self._runtimes.create(group_id)
        group = runtime.group
        if not isinstance(group, ClassicGroup) and group.is_empty and not request.member_id:
            group = ClassicGroup(self._config)
            group.generation = runtime.last_generation
        if not isinstance(group, ClassicGroup):
            # Kafka lets members of both protocols into one group for a change-over without a stop; we do not.
            error = Errors.UNKNOWN_MEMBER_ID if group.is_empty else Errors.INCONSISTENT_GROUP_PROTOCOL
            answer.set_result(JoinResult(error, request.member_id))
        else:
            group.join(request, answer, self._clock.monotonic())
            runtime.settle_join(group)
            if request.new_member_id in group.pending:
                self._limit_invited(group_id, request.new_member_id)
        return answer

    def _limit_invited(self, group_id: str, member_id: str) -> None:
        """Note a member id that was given out. If there are too many, the oldest one ends: its client is gone."""
        self._invited.append((group_id, member_id))
        if len(self._invited) > PENDING:
            former, oldest = self._invited.popleft()
            runtime = self._find_inviting(former, oldest)
            if runtime is not None and isinstance(runtime.group, ClassicGroup):
                runtime.group.leave(oldest, None, self._clock.monotonic())
                runtime.settle()

    def _find_inviting(self, group_id: str, member_id: str) -> GroupRuntime | None:
        """The group, if it still waits for the client that this id was given to."""
        runtime = self._runtimes.get(group_id)
        waits = runtime is not None and isinstance(runtime.group, ClassicGroup) and member_id in runtime.group.pending
        return runtime if waits else None

    async def forget_invited(self) -> None:
        """Forget the oldest ids that were given out, up to the first one that a group still waits for."""
        pace = BackgroundPace()
        while self._invited and self._find_inviting(*self._invited[0]) is None:
            self._invited.popleft()
            if pace.due():
                await pace.turn()

    def sync(self, group_id: str, request: SyncRequest) -> "asyncio.Future[SyncResult]":
        """The answer may come only when the leader has synced. Call `withdraw` if nobody waits for it any more."""
        answer: asyncio.Future[SyncResult] = asyncio.get_running_loop().create_future()
        runtime = self._runtimes.get(group_id)
        if error := self._partitions.refuse(group_id):
            answer.set_result(refuse_sync(error))
        elif runtime is None or not isinstance(runtime.group, ClassicGroup):
            answer.set_result(SyncResult(Errors.UNKNOWN_MEMBER_ID))
        else:
            runtime.group.sync(request, answer, self._clock.monotonic())
            runtime.settle()
        return answer

    def withdraw(self, group_id: str, answer: "asyncio.Future[JoinResult] | asyncio.Future[SyncResult]") -> None:
        """Give this answer at once, unless it has been given already."""
        if (runtime := self._runtimes.get(group_id)) is not None:
            runtime.withdraw(answer)

    def heartbeat(self, group_id: str, member_id: str, instance_id: str | None, generation: int) -> Errors:
        """Renew the session of a member; the error."""
        if error := self._partitions.refuse(group_id):
            # While the group is being loaded, members go on as they are. Kafka answers the same.
            return NONE if error == Errors.COORDINATOR_LOAD_IN_PROGRESS else error
        runtime = self._runtimes.get(group_id)
        if runtime is None or not isinstance(runtime.group, ClassicGroup):
            return Errors.UNKNOWN_MEMBER_ID
        return runtime.group.heartbeat(member_id, instance_id, generation, self._clock.monotonic())

    def leave(self, group_id: str, members: Iterable[tuple[str, str | None]]) -> tuple[Errors, list[Errors]]:
        """Remove members by member id, instance id, or both; an error for the request, and one for each member.

        This also removes static members of a group of the consumer protocol.
        """
        if error := self._partitions.refuse(group_id):
            return error, []
        runtime = self._runtimes.get(group_id)
        if runtime is None:
            return NONE, [Errors.UNKNOWN_MEMBER_ID for _ in members]
        now, group = self._clock.monotonic(), runtime.group
        if isinstance(group, TextGroup):
            return NONE, [Errors.UNKNOWN_MEMBER_ID for _ in members]
        if isinstance(group, ConsumerGroup):
            errors = [group.remove(member_id, instance_id) for member_id, instance_id in members]
        else:
            errors = [group.leave(member_id, instance_id, now) for member_id, instance_id in members]
        runtime.settle()
        return NONE, errors
