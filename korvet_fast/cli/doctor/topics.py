"""The topics that a store holds, as its registry tells of them: what an operator may not expect of them."""

from collections.abc import Iterator, Mapping
from typing import Final

from korvet_fast.cli.doctor.finding import Finding, warn
from korvet_fast.core.topics.topic import Document

KEYS: Final = "topics/"  # how the registry's keys of topics begin
_NAMED: Final = 5


def judge_topics(documents: Mapping[str, bytes], policy: str) -> Iterator[Finding]:
    """The findings about topics that only grow. `policy`: `log.cleanup.policy`, for topics without one of their own."""
    grow = sorted(
        key.removeprefix(KEYS)
        for key, packed in documents.items()
        if Document.unpack(packed).configs.get("cleanup.policy", policy) == "compact"
    )
    if not grow:
        return
    named = ", ".join(grow[:_NAMED]) + (f" and {len(grow) - _NAMED} more" if len(grow) > _NAMED else "")
    yield warn(
        "compaction",
        f"{named}: cleanup.policy=compact keeps every record, as nothing is compacted yet. Where that is too much, "
        "compact,delete removes records by time and size.",
    )
