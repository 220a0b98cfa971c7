"""Kafka topics as a PySpark data source, `format("korvet")`. Records move as Arrow batches, never as Python rows."""

from korvet_fast.spark.progress import source_metrics
from korvet_fast.spark.session import configure
from korvet_fast.spark.source import KorvetDataSource

__all__ = ["KorvetDataSource", "configure", "source_metrics"]
