"""The settings of groups, as the groups themselves read them."""

from typing import NamedTuple

from korvet_fast.config import Settings
from korvet_fast.core.groups.budget import GroupBudget


class ConsumerConfig(NamedTuple):
    """The settings of groups of the consumer protocol.

    `budget`: the memory that all groups share. `session_timeout`: seconds of silence after which a member is removed.
    `max_size`: the most members. `assignors`: those that members may ask for; the first is used where no member asks.
    """

    budget: GroupBudget
    session_timeout: float = 45.0
    max_size: int = (1 << 31) - 1
    assignors: tuple[str, ...] = ("uniform", "range")


class TextConfig(NamedTuple):
    """The settings of groups of the text protocol.

    `budget`: the memory that all groups share. `session_timeout`: seconds of silence after which a member is removed.
    `max_size`: the most members.
    """

    budget: GroupBudget
    session_timeout: float = 10.0
    max_size: int = (1 << 31) - 1


class GroupConfig(NamedTuple):
    """The settings of all groups; `initial_rebalance_delay` and `max_size` are those of the classic protocol.

    `budget`: the memory that all groups share. `initial_rebalance_delay`: seconds that an empty group waits for more
    members. `max_size`: the most members. `consumer`, `text`: the settings of those protocols.
    """

    budget: GroupBudget
    initial_rebalance_delay: float
    max_size: int
    consumer: ConsumerConfig
    text: TextConfig


def read_consumer_config(settings: Settings, budget: GroupBudget) -> ConsumerConfig:
    """The settings of the consumer protocol."""
    return ConsumerConfig(
        budget,
        settings.number("group.consumer.session.timeout.ms") / 1000,
        settings.number("group.consumer.max.size"),
        tuple(settings.text("group.consumer.assignors").split(",")),
    )


def read_text_config(settings: Settings, budget: GroupBudget) -> TextConfig:
    """The settings of the text protocol."""
    timeout, size = settings.number("text.session.timeout.ms"), settings.number("group.max.size")
    return TextConfig(budget, timeout / 1000, size)


def read_group_config(settings: Settings, budget: GroupBudget) -> GroupConfig:
    """The settings of all groups."""
    return GroupConfig(
        budget,
        settings.number("group.initial.rebalance.delay.ms") / 1000,
        settings.number("group.max.size"),
        read_consumer_config(settings, budget),
        read_text_config(settings, budget),
    )
