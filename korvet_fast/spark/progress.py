"""How far a stream is behind, computed from its progress: Spark takes metrics from sources written in Java only."""

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql.streaming.listener import StreamingQueryProgress


def source_metrics(progress: "StreamingQueryProgress | dict[str, Any] | None") -> list[dict[str, str]]:
    """The metrics that Spark's own Kafka source has in `progress.sources[n].metrics`, one row for each source.

    `progress`: `query.lastProgress`, one of `query.recentProgress`, or `event.progress` of a `StreamingQueryListener`;
    also what its JSON holds. A row has `minOffsetsBehindLatest`, `maxOffsetsBehindLatest` and `avgOffsetsBehindLatest`
    over the partitions, as that source counts them: the latest offset when the micro-batch was planned, less the one
    at which it ends. It is empty for another source, before the first micro-batch, and with PySpark 4.1, which does
    not report the latest offset.
    """
    if progress is None:
        return []
    return [_metrics(_offsets(row.get("endOffset")), _offsets(row.get("latestOffset"))) for row in progress["sources"]]


def _offsets(told: Any) -> Any:
    """Offsets are an object in the JSON of a progress, and text in its Python form, whatever the source wrote there."""
    if not isinstance(told, str):
        return told
    try:
        return json.loads(told)
    except ValueError:
        return None


def _metrics(end: Any, latest: Any) -> dict[str, str]:
    if not isinstance(end, dict) or not isinstance(latest, dict):
        return {}
    from korvet_fast.spark.offsets import read
    from korvet_fast.spark.stream import read_end

    reached = read_end(end)
    behind = [max(0, offset - reached.get(partition, 0)) for partition, offset in read(latest).items()]
    if not behind:
        return {}
    average = sum(behind) / len(behind)
    return {
        "minOffsetsBehindLatest": str(min(behind)),
        "maxOffsetsBehindLatest": str(max(behind)),
        "avgOffsetsBehindLatest": str(average),
    }
