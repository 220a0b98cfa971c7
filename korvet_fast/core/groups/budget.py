"""The memory that all groups of a broker may take, and how many groups there may be.

Clients create groups, and groups stay when their clients have gone. Kafka only bounds the size of the message that
stores a group (message.max.bytes). Groups keep the memory that they have; a request that needs more is refused.
"""

from collections.abc import Callable
from typing import Final

from korvet_fast.errors import NONE, Errors

LONGEST: Final = 255  # characters in the id of a group or of a member
GROUP: Final = 2_500  # bytes of memory of a group, without its members and offsets; these four are measured
MEMBER: Final = 2_000  # bytes of a member, without its ids, protocols and subscription
OFFSET: Final = 600  # bytes of a committed offset, without its metadata
PARTITION: Final = 130  # bytes of a partition in a member's current or target assignment (consumer protocol)
NAME: Final = 100  # bytes of a topic in the subscription of such a member, without its characters
PROTOCOL: Final = 500  # bytes of each protocol of a classic member after the first `FEW`, without its metadata
FEW: Final = 4  # protocols of a member that are not counted; no known client has more
MOST_PROTOCOLS: Final = 100  # protocols that a member may have
_ESCAPED: Final = 7  # bytes for a character of a text that is not ASCII, most of them in the document

Warn = Callable[[str, str], None]  # a kind and a line


def memory_of(size: int) -> int:
    """Bytes of memory for `size` bytes that a client sent: the bytes themselves, and the document that is stored."""
    return size * 12 // 5


def size_of(text: str) -> int:
    """The size of a text, as `memory_of` takes it."""
    return len(text) if text.isascii() else _ESCAPED * len(text)


def memory_of_ids(*ids: str | None) -> int:
    """Bytes of memory that the ids of a member take."""
    return memory_of(sum(size_of(text) for text in ids if text))


def _say_nothing(kind: str, text: str) -> None:
    """Warn nobody."""


class GroupBudget:
    """The limits of groups. `used`: bytes of memory that all groups take."""

    __slots__ = ("_warn", "all_bytes", "group_bytes", "groups", "used")

    def __init__(
        self, all_bytes: int = 1 << 62, group_bytes: int = 1 << 62, groups: int = 1 << 62, warn: Warn = _say_nothing
    ) -> None:
        """`all_bytes`, `group_bytes`: the most bytes of all groups, and of one group. `groups`: the most groups."""
        self.all_bytes = all_bytes
        self.group_bytes = group_bytes
        self.groups = groups
        self.used = 0
        self._warn = warn

    def refuse(self, memory: int, more: int) -> Errors:
        """The error if a group of `memory` bytes may not take `more` bytes; `NONE` if it may."""
        if more <= 0:
            return NONE
        if memory + more > self.group_bytes:
            self._warn("group memory", f"a group would pass group.memory.max.bytes = {self.group_bytes}: refused")
            return Errors.GROUP_MAX_SIZE_REACHED
        if self.used + more > self.all_bytes:
            way_out = "delete groups that nobody uses, or raise this setting"
            self._warn("groups memory", f"groups.memory.max.bytes = {self.all_bytes} is reached: {way_out}")
            return Errors.COORDINATOR_NOT_AVAILABLE
        return NONE

    def refuse_new(self, group_id: str, groups: int, *, joins: bool) -> Errors:
        """The error if a broker with so many groups may not have another one; `NONE` if it may.

        `joins`: a member that joins creates the group. Other new groups only have offsets, and may take three quarters
        of `max.groups`; the rest is for groups with members, which end by themselves.
        """
        if len(group_id) > LONGEST:
            return Errors.INVALID_GROUP_ID
        if groups >= self.groups - (0 if joins else self.groups // 4):
            way_out = "delete groups that nobody uses, or raise this setting"
            self._warn("groups", f"max.groups = {self.groups} is reached, new groups are refused: {way_out}")
            return Errors.COORDINATOR_NOT_AVAILABLE
        return self.refuse(0, GROUP)
