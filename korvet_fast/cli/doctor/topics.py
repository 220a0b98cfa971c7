"""The topics that a store holds, as its registry tells of them: what an operator may not expect of them."""

from collections.abc import Iterator, Mapping
from typing import Final

from korvet_fast.cli.doctor.finding import Finding, bad, warn
from korvet_fast.core.topics.topic import Document
from korvet_fast.errors import StoreError

KEYS: Final = "topics/"  # how the registry's keys of topics begin
_NAMED: Final = 5


def judge_topics(documents: Mapping[str, bytes], policy: str) -> Iterator[Finding]:
    """The findings about topics that cannot be read, and about topics that only grow.

    `policy`: `log.cleanup.policy`, for topics without one of their own.
    """
    grow = []
    for key, packed in sorted(documents.items()):
        topic = key.removeprefix(KEYS)
        try:
            own = Document.unpack(packed).configs
        except StoreError as error:
            yield bad("topics", f"topic {topic!r} ({key} in @registry): {error.detail}. A broker serves all others")
        else:
            if own.get("cleanup.policy", policy) == "compact":
                grow.append(topic)
    if not grow:
        return
    named = ", ".join(grow[:_NAMED]) + (f" and {len(grow) - _NAMED} more" if len(grow) > _NAMED else "")
    yield warn(
        "compaction",
        f"{named}: cleanup.policy=compact keeps every record, as nothing is compacted yet. Where that is too much, "
        "compact,delete removes records by time and size.",
    )
