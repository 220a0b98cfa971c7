"""What a Spark session needs for `format("korvet")`: the source registered, and two settings that decide its speed."""

from pyspark.sql import SparkSession

from korvet_fast.spark.source import KorvetDataSource

BYTES_PER_BATCH = "spark.sql.execution.arrow.maxBytesPerBatch"
ROWS_PER_BATCH = "spark.sql.execution.arrow.maxRecordsPerBatch"
UNBOUNDED = 2**31 - 1  # exactly this value turns off a look at the batch's size before each row
ROWS = 16_384


def configure(spark: SparkSession) -> SparkSession:
    """Register the data source and set what makes writing fast; returns the session.

    With the size check off, a batch on its way to the sink is bounded by rows: `maxRecordsPerBatch` becomes 16,384. Set
    it lower afterwards where single rows are large, as 16,384 of them are held in memory at a time.
    """
    spark.dataSource.register(KorvetDataSource)
    spark.conf.set(BYTES_PER_BATCH, str(UNBOUNDED))
    spark.conf.set(ROWS_PER_BATCH, str(ROWS))
    return spark
