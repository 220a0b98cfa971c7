"""Prepares a Spark session for `format("korvet")`: registers the source, chooses the Python, changes two settings."""

import os
import sys
import weakref
from pathlib import Path

from pyspark.sql import SparkSession

from korvet_fast.spark.settings import BYTES_PER_BATCH, ROWS, ROWS_PER_BATCH, UNBOUNDED
from korvet_fast.spark.source import KorvetDataSource

WORKER_PATH = str(Path(__file__).with_name("worker_path"))  # makes workers start faster
_configured: "weakref.WeakSet[SparkSession]" = weakref.WeakSet()  # sessions that have the source


def configure(spark: SparkSession) -> SparkSession:
    """Register the data source, change the settings that slow down writing, and return the session.

    With the size check off, a batch on its way to the sink is bounded by rows: `maxRecordsPerBatch` becomes 16,384. Set
    it lower afterwards where single rows are large: a worker holds 16,384 of them in memory at a time.

    If Spark runs on this machine only and `PYSPARK_PYTHON` is not set, Python workers run the interpreter of this
    program: Spark's own choice, the first `python3` on the path, may lack this package. They import PySpark
    from its directory, compiled, and not from the archive in it.

    A second call for the same session sets the settings again.
    """
    _use_own_interpreter(spark)
    if spark not in _configured:  # Spark warns of a second time, and a cell of a notebook runs often
        spark.dataSource.register(KorvetDataSource)
        _configured.add(spark)
    spark.conf.set(BYTES_PER_BATCH, str(UNBOUNDED))
    spark.conf.set(ROWS_PER_BATCH, str(ROWS))
    return spark


def _use_own_interpreter(spark: SparkSession) -> None:
    context = getattr(spark, "sparkContext", None)  # a session over Spark Connect has none
    if context is not None and context.master.startswith("local") and "PYSPARK_PYTHON" not in os.environ:
        context.pythonExec = sys.executable
        path = context.environment.get("PYTHONPATH", "").split(os.pathsep)
        context.environment["PYTHONPATH"] = os.pathsep.join(dict.fromkeys([WORKER_PATH, *filter(None, path)]))
