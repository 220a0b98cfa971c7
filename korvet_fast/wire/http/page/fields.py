"""What a request for a page asks: its fields, read strictly."""

from collections.abc import Mapping
from typing import Final, NamedTuple

from korvet_fast.core.broker import Broker
from korvet_fast.core.topics.topic import Topic
from korvet_fast.errors import Errors, KorvetError
from korvet_fast.wire.http.page.show import show_line

_DIGITS: Final = 19  # of a number


def read_number(fields: Mapping[str, str], name: str, default: int | None = None) -> int:
    """A whole number that is not negative; `default` where there is none. Raises `KorvetError` INVALID_REQUEST."""
    text = fields.get(name, "").strip().replace(",", "")
    if not text and default is not None:
        return default
    if not (text.isascii() and text.isdigit()) or len(text) > _DIGITS:
        raise KorvetError(Errors.INVALID_REQUEST, f"{name} is {show_line(text)!r}: give a whole number from 0 on")
    return int(text)


def find_topic(broker: Broker, name: str) -> Topic:
    """Raises `KorvetError` UNKNOWN_TOPIC_OR_PARTITION."""
    topic = broker.topics.get(name)
    if topic is None:
        raise KorvetError(Errors.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {show_line(name)!r}")
    return topic


class Sheet(NamedTuple):
    """The rows from `start` to `end` of a list of `total`. `before`, `after`: where other parts begin, or -1."""

    start: int
    end: int
    total: int
    before: int
    after: int


def cut(fields: Mapping[str, str], total: int, most: int) -> Sheet:
    """The part of `total` rows that begins at the field `start`. Raises `KorvetError` INVALID_REQUEST."""
    start = min(read_number(fields, "start", 0), max(0, total - 1))
    end = min(total, start + most)
    return Sheet(start, end, total, max(0, start - most) if start else -1, end if end < total else -1)
