"""Kafka topics as a PySpark data source, `format("korvet")`: Arrow record batches in and out, no row in Python."""

from korvet_fast.spark.session import configure
from korvet_fast.spark.source import KorvetDataSource

__all__ = ["KorvetDataSource", "configure"]
