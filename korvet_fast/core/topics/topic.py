"""One topic: its name, its settings, its partitions, and the JSON document that tells of them in the registry."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from korvet_fast.config import Settings
from korvet_fast.core.partition.collaborators import PartitionCollaborators
from korvet_fast.core.partition.entries_partition import EntriesPartition
from korvet_fast.core.partition.legacy_partition import LegacyPartition
from korvet_fast.core.partition.partition import Partition
from korvet_fast.core.topic_config import ONLY, TopicConfig
from korvet_fast.errors import Errors, KorvetError, StoreError

# The topics that Kafka's brokers keep for themselves (Topic.java).
_INTERNAL: Final = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state"})
_METADATA_LOG: Final = "__cluster_metadata"  # Kafka's name of the metadata log, which DescribeQuorum tells of
_NAME = re.compile(r"[a-zA-Z0-9._-]{1,249}")  # Kafka's rule (Topic.java), "." and ".." excepted


class Document(NamedTuple):
    """A topic in the registry. `id`: 16 random bytes, never used again. `version` counts the changes."""

    id: bytes
    partitions: int
    configs: Mapping[str, str]
    fixed: Mapping[str, str] = ONLY
    deleting: bool = False  # the records are being removed, and clients do not see the topic any more
    version: int = 0
    replicas: Sequence[Sequence[int]] = ()  # by partition: the brokers that have copies; of files that are copied only
    deleter: str = ""  # the incarnation of the broker that removes the records

    def pack(self) -> bytes:
        values = self._asdict() | {"id": self.id.hex(), "configs": dict(self.configs), "fixed": dict(self.fixed)}
        for optional in ("replicas", "deleter"):
            if not values[optional]:
                del values[optional]
        return json.dumps(values, sort_keys=True).encode()

    @classmethod
    def unpack(cls, data: bytes) -> "Document":
        """Raises `StoreError` if it is damaged."""
        try:
            values: dict[str, Any] = json.loads(data)
            identity, partitions = bytes.fromhex(values["id"]), int(values["partitions"])
            configs = dict(values["configs"])
        except (ValueError, KeyError, TypeError, OverflowError) as error:
            raise StoreError(f"its document is damaged: {error!r}") from error
        # Documents of before there was a choice have no fixed settings.
        fixed, version = values.get("fixed", ONLY), values.get("version", 0)
        deleting, replicas = values.get("deleting", False), values.get("replicas", ())
        return cls(identity, partitions, configs, fixed, deleting, version, replicas, values.get("deleter", ""))


class Topic:
    """A topic and its partitions. `packed`: its document, as it is in the registry.

    `replicas`: see `Document`. `made`: how many partitions it begins with, if that is fewer than the document says;
    `grow` makes the others.
    """

    __slots__ = ("config", "id", "name", "packed", "partitions", "replicas", "version")

    def __init__(
        self, given: PartitionCollaborators, name: str, packed: bytes, settings: Settings, made: int | None = None
    ) -> None:
        document = Document.unpack(packed)
        self.name = name
        self.packed = packed
        self.id = document.id
        self.version = document.version
        self.replicas = document.replicas
        self.config = TopicConfig(settings, document.configs, document.fixed, syncs=given.store.syncs)
        self.partitions: list[Partition] = []
        self.grow(given, document.partitions if made is None else made)

    def grow(self, given: PartitionCollaborators, total: int) -> list[Partition]:
        """Grow to `total` partitions; returns the new ones."""
        kind: type[Partition] = LegacyPartition if self.config.legacy else Partition
        if self.config.log_format.entries_layout:
            kind = EntriesPartition
        added = [kind(given, self.name, index, self.config) for index in range(len(self.partitions), total)]
        self.partitions += added
        return added

    def describe(self) -> Document:
        """The document that tells of the topic as it is."""
        overrides, fixed = self.config.overrides, self.config.fixed
        return Document(self.id, len(self.partitions), overrides, fixed, False, self.version, self.replicas)

    def configure(self, config: TopicConfig) -> None:
        """Replace the topic's configs by these."""
        self.config = config
        for partition in self.partitions:
            partition.configure(config)


def check_name(name: str) -> None:
    """Raises `KorvetError` INVALID_TOPIC_EXCEPTION for a name that Kafka does not allow."""
    if not _NAME.fullmatch(name) or name in (".", ".."):
        legal = "1 to 249 of letters, digits, '.', '_' and '-', and not '.' or '..'"
        raise KorvetError(Errors.INVALID_TOPIC_EXCEPTION, f"a topic's name is {legal}")


def check_new_name(name: str) -> None:
    """Raises `KorvetError` for a name that no new topic may have.

    TOPIC_AUTHORIZATION_FAILED for the metadata log's, whoever asks (ControllerApis.scala), else as `check_name`.
    """
    check_name(name)
    if name == _METADATA_LOG:
        raise KorvetError(Errors.TOPIC_AUTHORIZATION_FAILED, f"{name} is the metadata log, and no topic")


def may_auto_create(settings: Settings, name: str) -> bool:
    """Whether this broker creates a topic of this name when a client asks for it.

    It never creates Kafka's internal topics, nor one of the metadata log's name: a client that asks for one reads it,
    and would believe an empty one.
    """
    return settings.flag("auto.create.topics.enable") and name not in _INTERNAL and name != _METADATA_LOG
