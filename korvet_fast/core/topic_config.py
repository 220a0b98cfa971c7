"""The effective config of one topic: its own over the broker's, and those that were fixed at its creation."""

import logging
from collections.abc import Mapping
from typing import Final

from korvet_fast.config import Described, Settings, Source
from korvet_fast.config_def import TOPIC_SETTINGS, explain_unknown, show
from korvet_fast.errors import Errors, KorvetError, StoreError
from korvet_fast.store.interface import Store
from korvet_fast.store.types import BATCHES, ENTRIES, LogFormat, SegmentLimits

CODECS = {"uncompressed": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}  # compression.type -> number in a batch
LAYOUT: Final = "storage.layout"
BITS: Final = "offset.sequence.bits"
ONLY: Final = {LAYOUT: BATCHES}  # fixed for topics that were made when there was no choice
_ANY = "store"  # as a layout: the store's first
LEGACY: Final = "legacy"  # as a layout: the store's `batches`, of messages of Kafka 0.7
# The configs that such a topic's messages fix.
_OF_LEGACY: Final = {"message.timestamp.type": "LogAppendTime", "compression.type": "producer"}
_NO_LIMIT: Final = 1 << 62
_PRECISE = 12  # bits beyond which offsets of today's clock do not fit the 53 bits of a JavaScript number

logger = logging.getLogger(__name__)


class TopicConfig:
    """A topic's settings: its own over the broker's. `overrides`: name -> text.

    `fixed`: what `fix` gave at the topic's creation. `syncs`: what durability=server asks of the store. Raises
    `KorvetError` INVALID_CONFIG. The attributes are what an append looks at, ready to use.
    """

    __slots__ = (
        "_settings",
        "after_max_ms",
        "as_sent",
        "compression",
        "copies",
        "fixed",
        "legacy",
        "log_append_time",
        "log_format",
        "max_batch_bytes",
        "max_message_bytes",
        "overrides",
        "retention_bytes",
        "retention_ms",
        "segment_limits",
        "strict",
        "sync",
    )

    def __init__(
        self,
        settings: Settings,
        overrides: Mapping[str, str | None],
        fixed: Mapping[str, str] = ONLY,
        *,
        syncs: bool = True,
    ) -> None:
        self._settings = settings
        self.fixed = dict(fixed)
        self.overrides = {name: _legal(name, text) for name, text in overrides.items()}
        self.legacy = legacy = fixed[LAYOUT] == LEGACY
        self.max_message_bytes = self.number("max.message.bytes")
        self.max_batch_bytes = _NO_LIMIT if legacy else self.max_message_bytes  # `legacy`: a message has the limit
        codec = CODECS.get(self.text("compression.type"))  # None: as the producer sent it
        entries_layout = fixed[LAYOUT] == ENTRIES
        self.log_format = LogFormat(int(fixed.get(BITS, 0)), entries_layout, codec or 0 if entries_layout else 0)
        self.compression = None if entries_layout or legacy else codec
        self.as_sent = self.compression is None and not legacy  # the store is given a batch as its producer sent it
        self.log_append_time = legacy or self.text("message.timestamp.type") == "LogAppendTime"
        self.after_max_ms = self.number("message.timestamp.after.max.ms")
        self.segment_limits = SegmentLimits(self.number("segment.bytes"), self.number("segment.ms"))
        self.copies = self.number("min.insync.replicas")
        durability = self.text("durability")
        self.sync = durability == "fsync" or (durability == "server" and syncs)
        self.strict = durability == "fsync" or self.copies > 1  # the store may have to refuse acks=all
        # Compaction alone keeps the last record of every key. Nothing is compacted yet, so every record is kept.
        deletes = "delete" in self.text("cleanup.policy").split(",")
        self.retention_ms = self.number("retention.ms") if deletes else -1
        self.retention_bytes = self.number("retention.bytes") if deletes else -1

    def text(self, name: str) -> str:
        row = TOPIC_SETTINGS[name]
        own = self.overrides.get(name)
        return self._settings.text(row.name) if own is None else show(row.parse(own))

    def number(self, name: str) -> int:
        return int(self.text(name))

    def describe(self) -> list[Described]:
        """Every topic setting that means something to the store, by name."""
        return [self._describe(name) for name in sorted(TOPIC_SETTINGS) if self._applies(name)]

    def _applies(self, name: str) -> bool:
        # Where a store has one layout only, nothing was chosen.
        return (name in self.fixed and (BITS in self.fixed or self.legacy)) or not TOPIC_SETTINGS[name].fixed

    def _describe(self, name: str) -> Described:
        row = TOPIC_SETTINGS[name]
        synonyms = self._settings.synonyms(row.name)
        if name in self.fixed:
            synonyms = ((name, self.fixed[name], Source.TOPIC), *synonyms)
        elif name in self.overrides:
            synonyms = ((name, self.text(name), Source.TOPIC), *synonyms)
        _, value, source = synonyms[0]
        return Described(name, value, source, row, synonyms)

    def keep(self, given: Mapping[str, str | None]) -> dict[str, str | None]:
        """Settings that are to replace `overrides`, without those that are fixed. Raises INVALID_CONFIG for others."""
        for name, text in given.items():
            row = TOPIC_SETTINGS.get(name)
            if row is not None and (row.fixed or name in self.fixed) and text != self.fixed.get(name):
                raise KorvetError(Errors.INVALID_CONFIG, f"{name} is fixed when a topic is created")
        return {name: text for name, text in given.items() if name not in self.fixed}


def fix(
    settings: Settings, given: Mapping[str, str | None], store: Store
) -> tuple[dict[str, str], dict[str, str | None]]:
    """Divide the settings given for a new topic: those that stay fixed, and the others. Raises INVALID_CONFIG."""
    own = dict(given)
    layout = _legal(LAYOUT, own.pop(LAYOUT, settings.text(LAYOUT)))
    if layout == _ANY:
        layout = store.layouts[0]
    own, forced = _force(layout, own)
    if _layout_at_rest(layout) not in store.layouts:
        raise KorvetError(Errors.INVALID_CONFIG, _explain(LAYOUT, layout, store))
    if ENTRIES not in store.layouts:
        if BITS in own:
            raise KorvetError(Errors.INVALID_CONFIG, _explain(BITS, own[BITS], store))
        return {LAYOUT: layout} | forced, own
    bits = show(TOPIC_SETTINGS[BITS].parse(_legal(BITS, own.pop(BITS, settings.text(BITS)))))
    return {LAYOUT: layout, BITS: bits} | forced, own


def _force(layout: str, own: Mapping[str, str | None]) -> tuple[dict[str, str | None], dict[str, str]]:
    """A new topic's settings without those that its layout decides, and the decided ones. Raises INVALID_CONFIG."""
    forced = _OF_LEGACY if layout == LEGACY else {}
    for name, text in forced.items():
        if own.get(name, text) != text:
            raise KorvetError(Errors.INVALID_CONFIG, f"{name} of a topic with {LAYOUT}={layout} can only be {text}")
    return {name: text for name, text in own.items() if name not in forced}, dict(forced)


def _layout_at_rest(layout: str) -> str:
    """The store's name of the layout."""
    return BATCHES if layout == LEGACY else layout


def warn(name: str, fixed: Mapping[str, str]) -> None:
    """Log what the creator of a topic may not expect."""
    if int(fixed.get(BITS, 0)) > _PRECISE:
        text = "topic %s: with %s=%s its offsets are too large for programs that hold numbers in 53 bits (JavaScript)"
        logger.warning(text, name, BITS, fixed[BITS])


def check_store(settings: Settings, store: Store) -> None:
    """Raises `StoreError` for broker-wide settings that mean nothing to this store."""
    layout = settings.text(LAYOUT)
    if _layout_at_rest(layout) not in (_ANY, *store.layouts):
        raise StoreError(_explain(LAYOUT, layout, store))
    if ENTRIES not in store.layouts and settings.source(BITS) is not Source.DEFAULT:
        raise StoreError(_explain(BITS, settings.text(BITS), store))


def _explain(name: str, value: str | None, store: Store) -> str:
    if name == LAYOUT:
        return f"{name} is {value}, but this store keeps records as {' or '.join(store.layouts)} only"
    return f"{name} is {value}, but this store's offsets have no sequence numbers: leave it out"


def _legal(name: str, text: str | None) -> str:
    row = TOPIC_SETTINGS.get(name)
    if row is None:
        raise KorvetError(Errors.INVALID_CONFIG, f"topics have no setting {explain_unknown(name, TOPIC_SETTINGS)}")
    try:
        # The text as given is not kept: 32 KB of spaces around a number would be kept with every topic.
        return show(row.parse(text))
    except ValueError as error:
        raise KorvetError(Errors.INVALID_CONFIG, f"{name} {error}") from None
