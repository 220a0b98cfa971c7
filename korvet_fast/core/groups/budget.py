"""The memory that all groups of a broker may take, and how many groups there may be.

Clients fill it, and it stays when they have gone. Kafka bounds the same by the size of the message that keeps a group
(message.max.bytes) and by nothing else. Groups keep what they have; a request that needs more is refused.
"""

from collections.abc import Callable
from typing import Final

from korvet_fast.errors import NONE, Errors

LONGEST: Final = 255  # characters of what clients call groups and members
GROUP: Final = 2_500  # bytes of memory of a group, without its members and offsets; these four are measured
MEMBER: Final = 2_000  # of a member, without its ids and what it says
OFFSET: Final = 600  # of a committed offset, without its metadata
PARTITION: Final = 130  # of a partition that a member of the consumer protocol has, or is to have
NAME: Final = 100  # of a topic that such a member names, without its characters
PROTOCOL: Final = 500  # of a protocol that a classic member has beside the first few, without what it says
FEW: Final = 4  # protocols that a member has for nothing; no client known has more
MOST_PROTOCOLS: Final = 100  # that it may have
_ESCAPED: Final = 7  # times its characters: what a text that is not ASCII takes, most of it in the document

Warn = Callable[[str, str], None]  # a kind and a line


def memory_of(size: int) -> int:
    """Bytes of memory that `size` bytes of a client take: as they are, and in the document that is stored."""
    return size * 12 // 5


def size_of(text: str) -> int:
    """The bytes that `memory_of` is to be told of a text."""
    return len(text) if text.isascii() else _ESCAPED * len(text)


def memory_of_ids(*ids: str | None) -> int:
    """Bytes of memory that the ids of a member take."""
    return memory_of(sum(size_of(text) for text in ids if text))


def _say_nothing(kind: str, text: str) -> None:
    """Warn nobody."""


class GroupBudget:
    """`used`: bytes of all groups. Errors are names of `korvet_fast.errors`, "" for none."""

    __slots__ = ("_warn", "all_bytes", "group_bytes", "groups", "used")

    def __init__(
        self, all_bytes: int = 1 << 62, group_bytes: int = 1 << 62, groups: int = 1 << 62, warn: Warn = _say_nothing
    ) -> None:
        """The most bytes of all groups and of one group, and the most groups."""
        self.all_bytes = all_bytes
        self.group_bytes = group_bytes
        self.groups = groups
        self.used = 0
        self._warn = warn

    def refuse(self, memory: int, more: int) -> Errors:
        """Why a group that takes `memory` bytes may not take `more`."""
        if more <= 0:
            return NONE
        if memory + more > self.group_bytes:
            self._warn("group memory", f"a group would pass group.memory.max.bytes = {self.group_bytes}: refused")
            return Errors.GROUP_MAX_SIZE_REACHED
        if self.used + more > self.all_bytes:
            way_out = "delete groups that nobody uses, or raise it"
            self._warn("groups memory", f"groups.memory.max.bytes = {self.all_bytes} is reached: {way_out}")
            return Errors.COORDINATOR_NOT_AVAILABLE
        return NONE

    def refuse_new(self, group_id: str, groups: int, *, joins: bool) -> Errors:
        """Why a broker that has so many groups may not have one more. `joins`: its first request is that of a member.

        Groups that only have offsets leave a quarter of the room to the others, which end by themselves.
        """
        if len(group_id) > LONGEST:
            return Errors.INVALID_GROUP_ID
        if groups >= self.groups - (0 if joins else self.groups // 4):
            way_out = "delete groups that nobody uses, or raise it"
            self._warn("groups", f"max.groups = {self.groups} is reached, new groups are refused: {way_out}")
            return Errors.COORDINATOR_NOT_AVAILABLE
        return self.refuse(0, GROUP)
