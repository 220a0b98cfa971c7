"""The text protocol: JOIN, SYNC, HEARTBEAT and LEAVE, and the check of a COMMIT."""

import asyncio

from korvet_fast.core.clock import Clock
from korvet_fast.core.groups.budget import LONGEST
from korvet_fast.core.groups.config import TextConfig
from korvet_fast.core.groups.partitions import CoordinatorPartitions
from korvet_fast.core.groups.text.group import TextGroup, TextJoin, TextResult
from korvet_fast.core.topics.topics import Topics
from korvet_fast.errors import NONE, Errors

_OTHER_PROTOCOL = TextResult(
    Errors.INCONSISTENT_GROUP_PROTOCOL, reason="the members of this group speak Kafka's protocol: take another name"
)


class TextMembership:
    """Answers the requests of members of text groups."""

    def __init__(self, clock: Clock, config: TextConfig, partitions: CoordinatorPartitions, topics: Topics) -> None:
        self._clock = clock
        self._config = config
        self._partitions = partitions
        self._runtimes = partitions.runtimes
        self._topics = topics

    async def join(self, group_id: str, request: TextJoin) -> TextResult:
        """Let a client become a member, or stay one. The answer comes when the member's generation is stored."""
        error = self._partitions.refuse(group_id)
        if not error and max(len(group_id), len(request.member_id)) > LONGEST:
            error = Errors.INVALID_GROUP_ID
        runtime = self._runtimes.get(group_id)
        if not error and runtime is None:
            error = self._runtimes.refuse_new(group_id, joins=True)
        if error:
            return TextResult(error)
        runtime = runtime or self._runtimes.create(group_id)
        group = runtime.group
        if not isinstance(group, TextGroup) and group.is_empty:
            group = TextGroup(self._config, runtime.last_generation)
        if not isinstance(group, TextGroup):
            return _OTHER_PROTOCOL
        answer: asyncio.Future[TextResult] = asyncio.get_running_loop().create_future()
        group.join(request, answer, self._clock.monotonic())
        runtime.settle_join(group)
        return await answer

    async def leave(self, group_id: str, topic: str, member_id: str, generation: int) -> TextResult:
        """Remove a member. The answer comes when the group without the member is stored."""
        group, refused = self._find(group_id)
        if group is None:
            return refused
        answer: asyncio.Future[TextResult] = asyncio.get_running_loop().create_future()
        group.leave(member_id, topic, generation, answer)
        self._settle(group_id)
        return await answer

    def heartbeat(self, group_id: str, topic: str, member_id: str, generation: int) -> TextResult:
        """Renew the session of a member; its assignment."""
        group, refused = self._find(group_id)
        if group is None:
            return refused
        known = self._topics.get(topic)
        partitions = group.partitions if known is None else len(known.partitions)
        result = group.heartbeat(member_id, topic, generation, partitions, self._clock.monotonic())
        if group.changed:
            self._settle(group_id)
        return result

    def check(self, group_id: str) -> TextResult:
        """Check that this is a text group, and that this broker coordinates it; the answer has the error."""
        return self._find(group_id)[1]

    def _find(self, group_id: str) -> tuple[TextGroup | None, TextResult]:
        """The group, or the answer to a request that cannot reach it."""
        if error := self._partitions.refuse(group_id):
            return None, TextResult(error)
        runtime = self._runtimes.get(group_id)
        if runtime is None or (runtime.group.is_empty and not isinstance(runtime.group, TextGroup)):
            return None, TextResult(Errors.UNKNOWN_MEMBER_ID)
        if not isinstance(runtime.group, TextGroup):
            return None, _OTHER_PROTOCOL
        return runtime.group, TextResult(NONE)

    def _settle(self, group_id: str) -> None:
        if (runtime := self._runtimes.get(group_id)) is not None:
            runtime.settle()
