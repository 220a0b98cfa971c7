"""Prometheus's text format, version 0.0.4: written row by row, and kept as bytes a few hundred rows at a time.

https://prometheus.io/docs/instrumenting/exposition_formats/
"""

from typing import Final

from korvet_fast.wire.dialect import Reply
from korvet_fast.wire.http.metrics_table import METRICS, Metric

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
_MANY: Final = 500  # rows that are kept as text
_ESCAPES: Final = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})


class Exposition:
    """Rows by metric, whatever the order they are added in: Prometheus wants the rows of a metric together."""

    def __init__(self) -> None:
        self._rows: dict[str, list[str]] = {metric.name: [] for metric in METRICS}
        self._written: dict[str, list[bytes]] = {metric.name: [] for metric in METRICS}

    def add(self, metric: Metric, value: float, *labels: str) -> None:
        """Add a row; `labels`: the values of the first of the metric's labels, the others are left out."""
        self._add(metric.name, metric.name, write_labels(metric, *labels), value)

    def add_summary(self, metric: Metric, count: int, total: float, *labels: str) -> None:
        """Add the two rows of a summary: how many were observed, and the sum of what was."""
        written = write_labels(metric, *labels)
        self._add(metric.name, f"{metric.name}_sum", written, total)
        self._add(metric.name, f"{metric.name}_count", written, count)

    def add_labelled(self, metric: Metric, value: float, written: str) -> None:
        """As `add`, with labels that `write_labels` wrote: for several metrics with the same ones."""
        self._add(metric.name, metric.name, written, value)

    def _add(self, key: str, name: str, written: str, value: float) -> None:
        rows = self._rows[key]
        rows.append(f"{name}{written} {value}\n")
        if len(rows) >= _MANY:
            self._keep(key)

    def _keep(self, key: str) -> None:
        self._written[key].append("".join(self._rows[key]).encode())
        self._rows[key].clear()

    def finish(self) -> Reply:
        """The text in parts; a metric without a row is left out."""
        parts: Reply = []
        for metric in METRICS:
            if self._rows[metric.name]:
                self._keep(metric.name)
            if rows := self._written[metric.name]:
                doc = metric.doc.replace("\\", r"\\")
                parts.append(f"# HELP {metric.name} {doc}\n# TYPE {metric.name} {metric.kind}\n".encode())
                parts += rows
        return parts


def write_labels(metric: Metric, *values: str) -> str:
    """The labels of a row as text; "" without any."""
    if not values:
        return ""
    written = ",".join(
        f'{name}="{value.translate(_ESCAPES)}"' for name, value in zip(metric.labels, values, strict=False)
    )
    return f"{{{written}}}"
