"""What the settings come to for one topic: its own over the broker's."""

from collections.abc import Mapping

from korvet_fast.config import TOPIC_SETTINGS, Described, Settings, Source, explain_unknown, show
from korvet_fast.errors import KorvetError
from korvet_fast.store.interface import Piece

CODECS = {"uncompressed": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}  # compression.type -> number in a batch


class TopicConfig:
    """A topic's settings: its own over the broker's. `overrides`: name -> text, as given.

    Raises `KorvetError` INVALID_CONFIG. The attributes are what an append looks at, ready to use.
    """

    __slots__ = (
        "_settings",
        "after_max_ms",
        "compression",
        "log_append_time",
        "max_message_bytes",
        "min_insync_replicas",
        "overrides",
        "piece",
        "retention_bytes",
        "retention_ms",
        "sync",
    )

    def __init__(self, settings: Settings, overrides: Mapping[str, str | None]) -> None:
        self._settings = settings
        self.overrides = {name: _legal(name, text) for name, text in overrides.items()}
        self.max_message_bytes = self.number("max.message.bytes")
        self.compression = CODECS.get(self.text("compression.type"))  # None: as the producer sent it
        self.log_append_time = self.text("message.timestamp.type") == "LogAppendTime"
        self.after_max_ms = self.number("message.timestamp.after.max.ms")
        self.min_insync_replicas = self.number("min.insync.replicas")
        self.piece = Piece(self.number("segment.bytes"), self.number("segment.ms"))
        self.sync = self.text("durability") == "fsync"
        self.retention_ms = self.number("retention.ms")
        self.retention_bytes = self.number("retention.bytes")

    def text(self, name: str) -> str:
        row = TOPIC_SETTINGS[name]
        own = self.overrides.get(name)
        return self._settings.text(row.name) if own is None else show(row.parse(own))

    def number(self, name: str) -> int:
        return int(self.text(name))

    def describe(self) -> list[Described]:
        """Every topic setting, by name."""
        return [self._describe(name) for name in sorted(TOPIC_SETTINGS)]

    def _describe(self, name: str) -> Described:
        row = TOPIC_SETTINGS[name]
        synonyms = self._settings.synonyms(row.name)
        if name in self.overrides:
            synonyms = ((name, self.text(name), Source.TOPIC), *synonyms)
        _, value, source = synonyms[0]
        return Described(name, value, source, row, synonyms)


def _legal(name: str, text: str | None) -> str:
    row = TOPIC_SETTINGS.get(name)
    if row is None:
        raise KorvetError("INVALID_CONFIG", f"topics have no setting {explain_unknown(name, TOPIC_SETTINGS)}")
    try:
        row.parse(text)
    except ValueError as error:
        raise KorvetError("INVALID_CONFIG", f"{name} {error}") from None
    assert text is not None  # no setting takes None
    return text
