"""The broker's topics, as consumer groups look at them."""

from korvet_fast._native import match_names
from korvet_fast.core.groups.consumer.members import TopicView
from korvet_fast.core.topics import Topics
from korvet_fast.errors import CodecError, KorvetError

_PATTERNS = 1000  # remembered


class TopicCatalogue:
    """`Catalogue` of all topics there are. What patterns fit is found out once for each state of the topics."""

    def __init__(self, topics: Topics) -> None:
        self._topics = topics
        self._found: dict[str, list[str]] = {}  # by pattern
        self._found_for = -1  # version

    @property
    def version(self) -> int:
        return self._topics.version

    def get(self, name: str) -> TopicView | None:
        topic = self._topics.get(name)
        return TopicView(topic.id, len(topic.partitions)) if topic is not None else None

    def match(self, pattern: str) -> list[str]:
        """Raises `KorvetError` INVALID_REGULAR_EXPRESSION."""
        if self._found_for != self.version or len(self._found) >= _PATTERNS:
            self._found, self._found_for = {}, self.version
        if pattern not in self._found:
            try:
                self._found[pattern] = match_names(pattern, [topic.name for topic in self._topics])
            except CodecError as error:
                why = error.message.splitlines()[-1].removeprefix("error: ")  # the lines before point into the pattern
                raise KorvetError("INVALID_REGULAR_EXPRESSION", f"{pattern[:80]!r}: {why}") from None
        return self._found[pattern]
