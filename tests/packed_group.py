"""A group's document, encoded in one go: the coordinator encodes it part by part, between other work."""

from korvet_fast.core.groups.documents import AnyGroup, describe_group
from korvet_fast.core.groups.encoding import encode


def pack_group(group: AnyGroup, since: int) -> bytes:
    """The document of a group that became empty at `since`, wall time in ms."""
    return b"".join(encode(describe_group(group, since)))
