"""The topics that the members of a group read."""

from korvet_fast.core.groups.consumer.members import Catalogue, ConsumerMembers, Subscription, TopicView


class SubscribedTopics:
    """`topics`: by name, as of the last `refresh`. `version`: that of the catalogue then."""

    __slots__ = ("_found", "topics", "version")

    def __init__(self) -> None:
        self.topics: dict[str, TopicView] = {}
        self.version = -1
        self._found: dict[Subscription, dict[str, TopicView]] = {}  # topics by name, by subscription

    def refresh(self, catalogue: Catalogue, members: ConsumerMembers) -> bool:
        """Find the topics that members read; returns whether these topics, or their partitions, have changed."""
        known = self._found if catalogue.version == self.version else {}
        self.version = catalogue.version
        self._found = {}
        seen: dict[str, TopicView] = {}
        for subscription in {member.subscription for member in members}:
            found = known.get(subscription)
            if found is None:
                found = _find(catalogue, *subscription)
            self._found[subscription] = found
            seen |= found
        changed = seen != self.topics
        self.topics = seen
        return changed

    def ids(self) -> dict[Subscription, frozenset[bytes]]:
        """The ids of the topics that members read, by their subscription."""
        return {
            subscription: frozenset(view.id for view in found.values()) for subscription, found in self._found.items()
        }


def _find(catalogue: Catalogue, names: tuple[str, ...], regex: str) -> dict[str, TopicView]:
    """The topics of a subscription that exist."""
    wanted = {*names, *catalogue.match(regex)} if regex else names
    return {name: view for name in wanted if (view := catalogue.get(name)) is not None}
