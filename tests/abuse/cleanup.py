"""An operator's cleanup after an attack: delete the topics and groups that nobody wants, as anybody may."""

import time

from abuse.wire import Line
from kafka_server import DELETE_GROUPS, DELETE_TOPICS, LIST_GROUPS, METADATA

_THROTTLED, _NON_EMPTY, _NOT_FOUND = 89, 68, 69
_AT_ONCE = 500
_WITHIN = 300.0  # seconds; as many topics as attacks make take a minute, by the broker's quota


def list_topics(port: int) -> set[str]:
    """The names of all topics."""
    with Line(port) as line:
        return {topic["name"] for topic in line.ask(METADATA, 12, topics=None)["topics"]}


def clean_up(port: int, keep: set[str]) -> None:
    """Delete all topics but these, as slowly as the broker wishes, and all groups that have no members."""
    with Line(port) as line:
        _delete_topics(line, sorted(list_topics(port) - keep))
        groups = [group["group_id"] for group in line.ask(LIST_GROUPS, 4)["groups"]]
        for start in range(0, len(groups), _AT_ONCE):
            answer = line.ask(DELETE_GROUPS, 2, groups_names=groups[start : start + _AT_ONCE])
            # Some have members whose sessions have not ended, others have gone by themselves.
            others = [row for row in answer["results"] if row["error_code"] not in (0, _NON_EMPTY, _NOT_FOUND)]
            assert not others, others[:3]


def _delete_topics(line: Line, names: list[str]) -> None:
    until = time.monotonic() + _WITHIN
    while names:
        rows = [{"name": name, "topic_id": bytes(16)} for name in names[:_AT_ONCE]]
        answer = line.ask(DELETE_TOPICS, 6, topics=rows, timeout_ms=60_000)
        refused = [row for row in answer["responses"] if row["error_code"]]
        others = [row for row in refused if row["error_code"] != _THROTTLED]
        assert not others, others[:3]
        assert not refused or time.monotonic() < until, "the broker does not let the topics be deleted"
        names = [row["name"] for row in refused] + names[_AT_ONCE:]
        if refused:
            time.sleep(max(answer["throttle_time_ms"] / 1000, 0.1))
