"""The document of a text group in the registry, as values; `documents` makes JSON of it."""

from typing import Any, Final

from korvet_fast.core.groups.config import TextConfig
from korvet_fast.core.groups.text.group import TextGroup, TextMember

TYPE: Final = "text"
_BEGIN: Final = b'{"type": "text"'


def pack_text(group: TextGroup) -> dict[str, Any]:
    """The group as values of JSON. The assignment follows from the rest, and is there for people to read."""
    return {
        "type": TYPE,  # first: `is_text` looks for it there
        "generation": group.generation,
        "topic": group.topic,
        "partitions": group.partitions,
        "assignor": group.assignor,
        "members": [{"id": member.id, "client_host": member.client_host} for member in group.members.values()],
        "assignments": {member.id: list(member.assigned) for member in group.members.values()},
    }


def is_text(document: bytes) -> bool:
    """Whether a document of a group, as JSON, is one of a text group."""
    return document.startswith(_BEGIN)


def unpack_text(values: dict[str, Any], config: TextConfig) -> TextGroup:
    """Read a group that `pack_text` packed; the caller has to resume it."""
    group = TextGroup(config, values["generation"])
    group.topic, group.partitions, group.assignor = values["topic"], values["partitions"], values["assignor"]
    for row in values["members"]:
        group.members[row["id"]] = TextMember(row["id"], row["client_host"])
    group.deal()
    return group
