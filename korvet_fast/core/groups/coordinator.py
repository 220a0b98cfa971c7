"""The group coordinator of a broker."""

from korvet_fast.config import Settings
from korvet_fast.core.acls.authorizer import Authorizer
from korvet_fast.core.cluster.cluster import Cluster
from korvet_fast.core.fair_queue import BackgroundPace
from korvet_fast.core.groups.budget import GroupBudget
from korvet_fast.core.groups.collaborators import GroupCollaborators
from korvet_fast.core.groups.config import read_group_config
from korvet_fast.core.groups.groups import Groups
from korvet_fast.core.groups.lag import INTERVAL, LagHistory
from korvet_fast.core.groups.membership.classic import ClassicMembership
from korvet_fast.core.groups.membership.consumer import ConsumerMembership
from korvet_fast.core.groups.membership.text import TextMembership
from korvet_fast.core.groups.offsets import Offsets
from korvet_fast.core.groups.partitions import CoordinatorPartitions
from korvet_fast.core.topics.topics import Topics


class GroupCoordinator:
    """Coordinates this broker's groups. Call `open`, use the parts, call `close`.

    `classic`, `consumer`, `text`: requests of members of the three protocols. `offsets`: committed offsets. `groups`:
    requests of administrators. `partitions`: which groups this broker coordinates. `keeps_lag_history`: set it before
    `open` where somebody can see `lag_history`.
    """

    def __init__(
        self,
        given: GroupCollaborators,
        settings: Settings,
        cluster: Cluster,
        topics: Topics,
        authorizer: Authorizer | None = None,
    ) -> None:
        budget = GroupBudget(
            settings.number("groups.memory.max.bytes"),
            settings.number("group.memory.max.bytes"),
            settings.number("max.groups"),
            given.log.warn,
        )
        config = read_group_config(settings, budget)
        self.partitions = CoordinatorPartitions(given, cluster, config)
        self.groups = Groups(self.partitions)
        self.offsets = Offsets(given.clock, settings, self.partitions, self.groups, topics)
        self.classic = ClassicMembership(given.clock, settings, config, self.partitions)
        self.consumer = ConsumerMembership(given.clock, settings, config.consumer, self.partitions, topics, authorizer)
        self.text = TextMembership(given.clock, config.text, self.partitions, topics)
        self.lag_history = LagHistory()
        self.keeps_lag_history = False
        self._topics = topics
        self._tasks = given.tasks
        self._expiration_interval = settings.number("offsets.retention.check.interval.ms") / 1000

    async def open(self) -> None:
        """Load the groups that this broker coordinates. Raises `StoreError`."""
        await self.partitions.reconcile()
        self._tasks.keep(self._expire_regularly)
        if self.keeps_lag_history:
            self._tasks.keep(self._sample_regularly)

    def close(self) -> None:
        """Give up all groups: requests that wait are told to find another coordinator. Writes go on."""
        self.partitions.close()

    async def _expire_regularly(self) -> None:
        while await self.partitions.pause(self._expiration_interval):
            await self.expire()

    async def _sample_regularly(self) -> None:
        seconds = 0.0
        while await self.partitions.pause(seconds):
            await self.lag_history.sample(self.partitions.runtimes, self._topics, BackgroundPace())
            seconds = INTERVAL

    async def expire(self) -> None:
        """Remove offsets whose retention time is over, and groups without offsets; forget unused member ids."""
        await self.classic.forget_invited()
        await self.offsets.expire()
