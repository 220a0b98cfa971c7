"""The broker's topics, as consumer groups see them, and which of them regular expressions match."""

import asyncio
from collections.abc import Awaitable, Callable, Set
from time import monotonic
from typing import Any, Final

from korvet_fast._native import match_names
from korvet_fast.core.acls.authorizer import Authorizer, Permissions
from korvet_fast.core.acls.binding import Operation, ResourceType
from korvet_fast.core.fair_executor import Longer
from korvet_fast.core.groups.consumer.members import Catalogue, TopicView
from korvet_fast.core.topics.topics import Topics
from korvet_fast.errors import CodecError, Errors, KorvetError

_PATTERNS: Final = 1000  # patterns remembered
_AT_ONCE: Final = 16  # names matched between two checks of the time
_PATIENCE: Final = 0.5  # seconds that a pattern may take over all topics; honest ones take some milliseconds
_SHORT: Final = 0.02  # seconds of the first try; a pattern that needs more gets a second try


class TopicCatalogue:
    """The `Catalogue` of all topics. Each pattern is matched once for each version of the topics."""

    def __init__(self, topics: Topics, authorizer: Authorizer | None = None) -> None:
        self._topics = topics
        self._authorizer = authorizer
        # By pattern: the topics that it matches, or why it is refused (a text: an exception would keep its frames).
        self._found: dict[str, list[str] | str] = {}
        self._found_for = -1  # `version`, as of `_found`
        self._matching: dict[str, asyncio.Future[None]] = {}

    @property
    def version(self) -> int:
        # What patterns match changes with the ACLs too.
        return self._topics.version + (0 if self._authorizer is None else self._authorizer.version)

    def restrict(self, permissions: Permissions | None) -> Catalogue:
        """The topics as a client sees them; None: it may describe all."""
        return self if permissions is None else _VisibleTopics(self, permissions)

    def get(self, name: str) -> TopicView | None:
        topic = self._topics.get(name)
        return TopicView(topic.id, len(topic.partitions)) if topic is not None else None

    def match(self, pattern: str) -> list[str]:
        """The topics that `find` found for this version of the topics; none for a pattern that is refused."""
        found = self._found[pattern]
        return [] if isinstance(found, str) else found

    def check(self, pattern: str) -> None:
        """Raises `KorvetError` INVALID_REGULAR_EXPRESSION if `find` has found the pattern to be invalid."""
        found = self._found[pattern]
        if isinstance(found, str):
            raise KorvetError(Errors.INVALID_REGULAR_EXPRESSION, found)

    def list_missing(self, patterns: Set[str]) -> Set[str]:
        """The patterns that `find` must be called with before `match`."""
        return patterns if self._found_for != self.version else patterns - self._found.keys()

    async def find(self, pattern: str, offload: Callable[..., Awaitable[Any]]) -> None:
        """Find the topics that a pattern matches. `offload` runs the search on another thread."""
        if (matching := self._matching.get(pattern)) is not None:
            await matching
            return
        matching = self._matching[pattern] = asyncio.get_running_loop().create_future()
        version = self.version
        try:
            found: list[str] | str = await offload(_match, pattern, [topic.name for topic in self._topics])
        except KorvetError as error:
            found = error.detail
        finally:
            del self._matching[pattern]
            matching.set_result(None)
        if self._found_for != version:
            self._found, self._found_for = {}, version
        self._found[pattern] = found
        if len(self._found) > _PATTERNS:
            del self._found[next(iter(self._found))]


class _VisibleTopics:
    """A `Catalogue` whose patterns match only topics that one client may describe."""

    def __init__(self, every: TopicCatalogue, permissions: Permissions) -> None:
        self._every = every
        self._permissions = permissions
        self.get = every.get

    @property
    def version(self) -> int:
        return self._every.version

    def match(self, pattern: str) -> list[str]:
        allows = self._permissions.allows
        return [name for name in self._every.match(pattern) if allows(Operation.DESCRIBE, ResourceType.TOPIC, name)]


def _match(pattern: str, names: list[str], patience: float = _SHORT) -> list[str]:
    """The names that a pattern matches.

    Raises `KorvetError` INVALID_REGULAR_EXPRESSION, also for a pattern that takes too long; or `Longer`.
    """
    until = monotonic() + patience
    try:
        found = match_names(pattern, [])
        for start in range(0, len(names), _AT_ONCE):
            found += match_names(pattern, names[start : start + _AT_ONCE])
            if monotonic() > until:
                if patience < _PATIENCE:
                    raise Longer(_match, pattern, names, _PATIENCE)
                why = f"it takes more than {_PATIENCE:g} s over all topics: write a simpler one"
                raise KorvetError(Errors.INVALID_REGULAR_EXPRESSION, f"{pattern[:80]!r}: {why}")
    except CodecError as error:
        why = error.message.splitlines()[-1].removeprefix("error: ")  # the lines before point into the pattern
        raise KorvetError(Errors.INVALID_REGULAR_EXPRESSION, f"{pattern[:80]!r}: {why}") from None
    return found
