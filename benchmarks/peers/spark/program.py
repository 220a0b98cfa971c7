"""A Spark session that does what it is told: one JSON object a line in, `{"ok": …}` or `{"error": …}` a line out.

It is run by the Python of any environment (environment.py) and needs nothing but PySpark there; only `"korvet": true`
at the start wants `korvet_fast` as well. Everything that moves data is told as a source and a sink, and the
answer has the `seconds` it took:

    {"do": "copy", "source": {"format": "kafka", "options": {…}}, "sink": {"format": "parquet", "path": "…"}}
    {"do": "stream", …the same…, "checkpoint": "…"}     all there is (Trigger.AvailableNow), then the batches it took
    {"do": "plan", "source": …, "sink": …}              the physical plan of the read, as text

`select` in a source is a list of SQL expressions; a source `{"rows": n, "partitions": p}` is the column `id`.
"""

import json
import sys
import time
from collections.abc import Callable
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

Request = dict[str, Any]
CONF = {
    "spark.ui.enabled": "false",
    "spark.driver.memory": "1g",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
}


def open_source(spark: SparkSession, source: Request, *, streaming: bool = False) -> DataFrame:
    """A request's source, as a data frame."""
    if "rows" in source:
        frame = spark.range(0, source["rows"], 1, source.get("partitions", 2))
    else:
        reader: Any = spark.readStream if streaming else spark.read
        frame = reader.format(source["format"]).options(**source.get("options", {})).load(*_path(source))
    return frame.selectExpr(*source["select"]) if "select" in source else frame


def _path(place: Request) -> list[str]:
    return [place["path"]] if "path" in place else []


def copy(spark: SparkSession, request: Request) -> Request:
    """One batch query."""
    began = time.perf_counter()
    sink = request["sink"]
    writer = open_source(spark, request["source"]).write.format(sink["format"]).mode(sink.get("mode", "append"))
    writer.options(**sink.get("options", {})).save(*_path(sink))
    return {"seconds": time.perf_counter() - began}


def stream(spark: SparkSession, request: Request) -> Request:
    """One streaming query until it has read what there was; `batches` is what it reports of each micro-batch."""
    began = time.perf_counter()
    sink = request["sink"]
    writer = open_source(spark, request["source"], streaming=True).writeStream.format(sink["format"])
    writer = writer.options(**sink.get("options", {})).option("checkpointLocation", request["checkpoint"])
    query = writer.trigger(availableNow=True).start(*_path(sink))
    query.awaitTermination()
    seconds = time.perf_counter() - began
    return {"seconds": seconds, "batches": [json.loads(progress.json) for progress in query.recentProgress]}


def plan(spark: SparkSession, request: Request) -> str:
    """The executed plan of reading the source."""
    frame: Any = open_source(spark, request["source"])
    return str(frame._jdf.queryExecution().executedPlan().toString())


VERBS: dict[str, Callable[[SparkSession, Request], Any]] = {"copy": copy, "stream": stream, "plan": plan}


def main(prepare: Callable[[SparkSession], None] = lambda spark: None) -> None:
    """Serve. `prepare` is called with the session before the first request."""
    start = json.loads(sys.argv[1])
    builder = SparkSession.builder.master(start.get("master", "local[2]"))
    for name, value in {**CONF, **start.get("conf", {})}.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    if start.get("korvet"):
        from korvet_fast.spark import configure

        configure(spark)
    prepare(spark)
    for line in sys.stdin:
        request = json.loads(line)
        try:
            answer = {"ok": VERBS[request["do"]](spark, request)}
        except (PySparkException, Py4JError) as error:
            answer = {"error": str(error)}
        print(json.dumps({"number": request["number"], **answer}), flush=True)
    spark.stop()


if __name__ == "__main__":
    main()
