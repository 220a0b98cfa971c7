"""What members of the consumer protocol ask of the coordinator, and how a group comes to be of that protocol."""

import asyncio

from korvet_fast.config import Settings
from korvet_fast.core.groups.consumer.catalogue import TopicCatalogue
from korvet_fast.core.groups.consumer.group import ConsumerGroup, ConsumerRules
from korvet_fast.core.groups.consumer.members import Beat, Beaten
from korvet_fast.core.groups.keeper import Keeper
from korvet_fast.core.groups.keepers import Keepers
from korvet_fast.core.host import Host
from korvet_fast.core.topics import Topics
from korvet_fast.errors import KorvetError, StoreError


def read_rules(settings: Settings) -> ConsumerRules:
    """What holds for consumer groups."""
    return ConsumerRules(
        settings.number("group.consumer.session.timeout.ms") / 1000,
        settings.number("group.consumer.max.size"),
        tuple(settings.text("group.consumer.assignors").split(",")),
    )


class Consumers:
    """`interval_ms`: how often members are to be heard. Faults are names of `korvet_fast.errors`, "" for none."""

    def __init__(self, host: Host, settings: Settings, keepers: Keepers, topics: Topics) -> None:
        self.interval_ms = settings.number("group.consumer.heartbeat.interval.ms")
        self._rules = read_rules(settings)
        self._host = host
        self._keepers = keepers
        self._topics = topics
        self._catalogue = TopicCatalogue(topics)

    async def beat(self, group_id: str, ask: Beat) -> Beaten:
        """A heartbeat; the answer when all that it reveals is stored.

        Raises `KorvetError` INVALID_REGULAR_EXPRESSION or UNSUPPORTED_ASSIGNOR.
        """
        if ask.assignor and ask.assignor not in self._rules.assignors:
            served = ", ".join(self._rules.assignors)
            raise KorvetError("UNSUPPORTED_ASSIGNOR", f"the assignors served are {served}")
        if ask.regex:
            self._catalogue.match(ask.regex)
        if any(self._topics.get(name) is None for name in ask.names or ()):
            try:
                await self._topics.refresh()  # another broker may have just made it
            except StoreError:
                return Beaten("COORDINATOR_NOT_AVAILABLE")
        fault = self._keepers.fault_of(group_id)
        keeper = self._find(group_id, joins=ask.epoch == 0) if not fault else None
        if keeper is None or not isinstance(keeper.group, ConsumerGroup):
            # Whoever is told that it is no member joins again, also where nothing is left of its group.
            return Beaten(fault or ("UNKNOWN_MEMBER_ID" if keeper is None else "GROUP_ID_NOT_FOUND"))
        answer: asyncio.Future[Beaten] = asyncio.get_running_loop().create_future()
        keeper.group.heartbeat(ask, answer, self._catalogue, self._host.clock.monotonic())
        keeper.settle()
        return await answer

    def _find(self, group_id: str, *, joins: bool) -> Keeper | None:
        """Who keeps the group. An empty one of the classic protocol becomes one of this, if somebody joins."""
        keeper = self._keepers.get(group_id)
        if joins:
            keeper = keeper or self._keepers.make(group_id)
            if not isinstance(keeper.group, ConsumerGroup) and keeper.group.is_empty:
                keeper.turn(ConsumerGroup(self._rules, keeper.group.generation))
        return keeper
