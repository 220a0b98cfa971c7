"""`make demo-spark`: files into a topic, a structured stream over it, Parquet and a picture; every figure checked.

The same flights as in `make demo`, as a CSV file: `korvet-fast ingest` loads it into a topic of a broker started here.
A structured stream works out the mean delays of each carrier and writes them as Parquet; the same figures, straight
from the file without Spark or a broker, have to be equal. All processes end with the demo.
"""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (Spark's guides call it so)
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from examples.flights.demo import BROKER, PARTITIONS, ROWS, TOPIC, console, flights, serving
from korvet_fast.spark import configure

AT_ONCE = 60_000  # records in one trigger, so that there are some
PICTURE = Path(__file__).parents[2] / "build" / "demo-spark.png"
FIELDS = "carrier STRING, dep_delay DOUBLE, arr_delay DOUBLE"
COLUMNS = ("flights", "departure", "arrival")


def load(address: str, file: Path) -> None:
    """The file into the topic, by the commands as they are installed."""
    subprocess.run(
        [BROKER, "topic", "create", TOPIC, "--partitions", str(PARTITIONS), "--bootstrap", address],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    ingest = [BROKER, "ingest", file, "--topic", TOPIC, "--key", "carrier", "--option", "nullValue=NA"]
    subprocess.run([*ingest, "--compression", "zstd", "--bootstrap", address], check=True)


def open_spark(directory: Path) -> SparkSession:
    """A session in this process, on all cores."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    builder = SparkSession.builder.appName("korvet-fast demo").master("local[*]")
    settings = {
        "spark.log.level": "ERROR",
        "spark.local.dir": directory / "local",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": 2,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    for name, value in settings.items():
        builder = builder.config(name, str(value))
    return configure(builder.getOrCreate())


def aggregate(spark: SparkSession, address: str, directory: Path, bar: Progress) -> tuple[pa.Table, int]:
    """Mean delays of each carrier by a structured stream, from Parquet; and how many triggers it took."""
    records = (
        spark.readStream.format("korvet")
        .option("kafka.bootstrap.servers", address)
        .option("subscribe", TOPIC)
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", AT_ONCE)
        .load()
    )
    flight = F.from_json(F.col("value").cast("string"), FIELDS).alias("flight")
    delays = (
        records.select(flight)
        .groupBy("flight.carrier")
        .agg(
            F.count(F.lit(1)).alias("flights"),
            F.avg("flight.dep_delay").alias("departure"),
            F.avg("flight.arr_delay").alias("arrival"),
        )
    )
    result = directory / "delays"

    def write(frame: DataFrame, _: int) -> None:
        frame.coalesce(1).write.mode("overwrite").parquet(str(result))

    task = bar.add_task("stream", total=ROWS)
    query = (
        delays.writeStream.outputMode("complete")
        .foreachBatch(write)
        .option("checkpointLocation", str(directory / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    done: dict[int, int] = {}
    ended = False
    while not ended:
        ended = bool(query.awaitTermination(1))
        done |= {progress.batchId: progress.numInputRows for progress in query.recentProgress}
        bar.update(task, completed=sum(done.values()))
    return pyarrow.parquet.read_table(result), len([rows for rows in done.values() if rows])


def compute(file: Path) -> pa.Table:
    """The same figures, straight from the file."""
    options = pyarrow.csv.ConvertOptions(include_columns=["carrier", "dep_delay", "arr_delay"], null_values=["NA", ""])
    rows = pyarrow.csv.read_csv(file, convert_options=options)
    means = rows.group_by("carrier").aggregate([([], "count_all"), ("dep_delay", "mean"), ("arr_delay", "mean")])
    return means.select(["carrier", "count_all", "dep_delay_mean", "arr_delay_mean"]).rename_columns(
        ["carrier", *COLUMNS]
    )


def by_carrier(table: pa.Table) -> dict[str, dict[str, Any]]:
    """The rows of a table by its column `carrier`, most flights first."""
    rows = table.sort_by([("flights", "descending")]).to_pylist()
    return {row["carrier"]: row for row in rows}


def show(delays: dict[str, dict[str, Any]], figures: dict[str, str]) -> None:
    """Print the figures, and what was done."""
    table = Table(title="What just happened", show_header=False)
    for what, figure in figures.items():
        table.add_row(what, figure)
    console.print(table)
    table = Table(title="Flights from New York, 2013: mean delays, minutes")
    table.add_column("carrier")
    for name in COLUMNS:
        table.add_column(name, justify="right")
    for carrier, row in delays.items():
        table.add_row(carrier, f"{row['flights']:,}", f"{row['departure']:.1f}", f"{row['arrival']:.1f}")
    console.print(table)


def draw(delays: dict[str, dict[str, Any]]) -> None:
    """The picture: mean delays of each carrier, the latest to depart first."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # draws without a screen
    from matplotlib.figure import Figure

    rows = sorted(delays.values(), key=lambda row: row["departure"], reverse=True)
    figure = Figure(figsize=(9, 4.5), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    places = range(len(rows))
    axes.bar([place - 0.2 for place in places], [row["departure"] for row in rows], 0.4, label="departure")
    axes.bar([place + 0.2 for place in places], [row["arrival"] for row in rows], 0.4, label="arrival")
    axes.set_xticks(list(places), [row["carrier"] for row in rows])
    axes.axhline(0, color="black", linewidth=0.8)
    axes.set_xlabel("carrier")
    axes.set_ylabel("mean delay, minutes")
    axes.set_title(f"{ROWS:,} flights from New York, 2013")
    axes.legend()
    PICTURE.parent.mkdir(exist_ok=True)
    figure.savefig(PICTURE, dpi=150)


def main() -> None:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with tempfile.TemporaryDirectory() as temporary:
        directory = Path(temporary)
        file = directory / "flights.csv"
        file.write_text("\n".join(flights()) + "\n")
        with serving(f"file:{directory / 'data'}") as address:
            load(address, file)
            began = time.perf_counter()
            spark = open_spark(directory)
            try:
                with Progress(*columns, console=console) as bar:
                    table, triggers = aggregate(spark, address, directory, bar)
            finally:
                spark.stop()
            seconds = time.perf_counter() - began
        found, direct = by_carrier(table), by_carrier(compute(file))
    if found != direct:
        raise SystemExit(f"the stream's figures are not those of the file:\n{found}\n{direct}")
    if sum(row["flights"] for row in found.values()) != ROWS:
        raise SystemExit(f"the file has {ROWS} flights, and the stream counted others")
    draw(found)
    figures = {
        "rows from CSV into the topic, as JSON": f"{ROWS:,}",
        "triggers of the stream": str(triggers),
        "seconds for it, Spark's start included": f"{seconds:.1f}",
    }
    show(found, figures)
    console.print(f"[green]The stream's figures are those of the file, to the last digit.[/] The picture: {PICTURE}")


if __name__ == "__main__":
    main()
