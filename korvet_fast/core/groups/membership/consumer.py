"""The consumer protocol (KIP-848): ConsumerGroupHeartbeat."""

import asyncio
from collections.abc import Set
from typing import Final

from korvet_fast.config import Settings
from korvet_fast.core.acls.authorizer import Authorizer, Permissions
from korvet_fast.core.clock import Clock
from korvet_fast.core.groups.budget import LONGEST
from korvet_fast.core.groups.config import ConsumerConfig
from korvet_fast.core.groups.consumer.catalogue import TopicCatalogue
from korvet_fast.core.groups.consumer.group import ConsumerGroup
from korvet_fast.core.groups.consumer.members import HeartbeatRequest, HeartbeatResult
from korvet_fast.core.groups.partitions import CoordinatorPartitions
from korvet_fast.core.partition.time_lookup import Offload, run_in_thread
from korvet_fast.core.topics.topics import Topics
from korvet_fast.errors import Errors, KorvetError, StoreError

_ROUNDS: Final = 5  # tries, as topics or members may change meanwhile


class ConsumerMembership:
    """`heartbeat_interval_ms`: how often members have to send heartbeats."""

    def __init__(
        self,
        clock: Clock,
        settings: Settings,
        config: ConsumerConfig,
        partitions: CoordinatorPartitions,
        topics: Topics,
        authorizer: Authorizer | None = None,
    ) -> None:
        self.heartbeat_interval_ms = settings.number("group.consumer.heartbeat.interval.ms")
        self._clock = clock
        self._config = config
        self._partitions = partitions
        self._runtimes = partitions.runtimes
        self._topics = topics
        self._catalogue = TopicCatalogue(topics, authorizer)

    async def heartbeat(
        self,
        group_id: str,
        request: HeartbeatRequest,
        offload: Offload = run_in_thread,
        permissions: Permissions | None = None,
    ) -> HeartbeatResult:
        """The answer, when the changes that it reveals are stored. `offload` runs work on another thread.

        `permissions`: of the client; regular expressions match what they let it describe. As in Kafka that is so for
        the expressions of all members, if this heartbeat is the first after topics or permissions have changed.

        Raises `KorvetError` INVALID_REQUEST, INVALID_REGULAR_EXPRESSION or UNSUPPORTED_ASSIGNOR.
        """
        joins = request.epoch == 0
        if joins or request.rack_id is not None or request.assignor:
            self._check(request)
        if any(self._topics.get(name) is None for name in request.names or ()):
            try:
                await self._topics.refresh()  # another broker may have just created it
            except StoreError:
                return HeartbeatResult(Errors.COORDINATOR_NOT_AVAILABLE)
        missing = self._list_missing(group_id, request)
        if missing and not await self._match(missing, group_id, request, offload):
            return HeartbeatResult(Errors.COORDINATOR_NOT_AVAILABLE)
        if request.regex:
            self._catalogue.check(request.regex)
        error = self._partitions.error_of(group_id)
        runtime = self._runtimes.get(group_id)
        if not error and runtime is None:  # UNKNOWN_MEMBER_ID makes a client join again
            error = self._runtimes.refuse_new(group_id, joins=True) if joins else Errors.UNKNOWN_MEMBER_ID
        if error:
            return HeartbeatResult(error)
        runtime = runtime or self._runtimes.create(group_id)
        group = runtime.group
        if joins and not isinstance(group, ConsumerGroup) and group.is_empty:
            group = ConsumerGroup(self._config, group.generation)
        if not isinstance(group, ConsumerGroup):
            return HeartbeatResult(Errors.GROUP_ID_NOT_FOUND)
        answer: asyncio.Future[HeartbeatResult] = asyncio.get_running_loop().create_future()
        topics = self._catalogue.restrict(permissions)
        group.heartbeat(request, answer, topics, self._clock.monotonic())
        runtime.settle_join(group)
        return await answer

    def _check(self, request: HeartbeatRequest) -> None:
        if request.epoch == 0 or request.rack_id is not None:
            for name in (request.member_id, request.instance_id, request.rack_id):
                if name is not None and len(name) > LONGEST:
                    raise KorvetError(
                        Errors.INVALID_REQUEST, f"an id has {len(name)} characters; at most {LONGEST} are taken"
                    )
        if request.assignor and request.assignor not in self._config.assignors:
            served = ", ".join(self._config.assignors)
            raise KorvetError(Errors.UNSUPPORTED_ASSIGNOR, f"the assignors served are {served}")

    def _list_missing(self, group_id: str, request: HeartbeatRequest) -> Set[str]:
        """The patterns that this heartbeat needs, and that were not matched with the present topics yet."""
        runtime, catalogue = self._runtimes.get(group_id), self._catalogue
        patterns = {request.regex} if request.regex else set()
        if runtime is not None and isinstance(runtime.group, ConsumerGroup):
            patterns |= runtime.group.list_patterns(catalogue.version, request)
        return catalogue.list_missing(patterns) if patterns else patterns

    async def _match(self, missing: Set[str], group_id: str, request: HeartbeatRequest, offload: Offload) -> bool:
        """Match these patterns with the topics; False if the topics change all the time."""
        for _ in range(_ROUNDS):
            for pattern in missing:
                await self._catalogue.find(pattern, offload)
            missing = self._list_missing(group_id, request)
            if not missing:
                return True
        return False
