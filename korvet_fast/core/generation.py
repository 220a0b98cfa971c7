"""Broker-wide generations: of the store's history, and of the metadata that clients get about topics and leaders."""

from collections.abc import Callable


class StoreGeneration:
    """The store's history as this broker knows it.

    `number` counts the changes of that history: values stored before the last change may be gone.
    `lowest_epoch`: no leader epoch given from now on is below it.
    """

    __slots__ = ("lowest_epoch", "number")

    def __init__(self) -> None:
        self.number = 0
        self.lowest_epoch = 0


class MetadataVersion:
    """`number` grows with every change of what clients are told about topics and their leaders.

    `on_change` is called with every change. It must not look at topics: the change may still be under way.
    """

    __slots__ = ("number", "on_change")

    def __init__(self) -> None:
        self.number = 0
        self.on_change: Callable[[], None] | None = None

    def advance(self) -> None:
        """Topics, their leaders or the brokers changed."""
        self.number += 1
        if self.on_change is not None:
            self.on_change()
