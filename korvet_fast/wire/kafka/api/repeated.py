"""Partitions that a request names more than once: no rule says which of their rows counts."""

from collections import Counter
from collections.abc import Iterable, Set

from korvet_fast.core.client_session import Refuse
from korvet_fast.errors import Errors, KorvetError
from korvet_fast.wire.kafka.session import Values


def find_repeated(topics: list[Values], name: str, rows: str, index: str) -> frozenset[tuple[str, int]]:
    """(topic, partition) of rows that are named more than once.

    `name`, `rows`, `index`: the API's names of these fields.
    """
    names = {topic[name] for topic in topics} if len(topics) > 1 else topics
    if len(names) == len(topics) and not any(_repeats(topic[rows], index) for topic in topics):
        return frozenset()
    named = Counter((topic[name], row[index]) for topic in topics for row in topic[rows])
    return frozenset(place for place, times in named.items() if times > 1)


def _repeats(rows: list[Values], index: str) -> bool:
    return len(rows) > 1 and len({row[index] for row in rows}) < len(rows)


def find_refusal(topics: list[Values], name: str, rows: str, index: str) -> Refuse | None:
    """The rule that refuses the rows that `find_repeated` finds; None if it finds none."""
    if len(topics) == 1 and len(topics[0][rows]) == 1:
        return None
    repeated = find_repeated(topics, name, rows, index)
    if not repeated:
        return None
    return lambda topic, partition: refuse_repeated("partition") if (topic, partition) in repeated else None


def find_twice(names: Iterable[object]) -> Set[object]:
    """The items that are named more than once."""
    return {name for name, times in Counter(names).items() if times > 1}


def refuse_repeated(what: str) -> KorvetError:
    return KorvetError(Errors.INVALID_REQUEST, f"the request names this {what} more than once: name it once")
