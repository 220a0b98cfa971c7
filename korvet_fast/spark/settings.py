"""Settings of a Spark session that decide how fast the sink is: how Spark cuts rows into Arrow batches."""

BYTES_PER_BATCH = "spark.sql.execution.arrow.maxBytesPerBatch"
ROWS_PER_BATCH = "spark.sql.execution.arrow.maxRecordsPerBatch"
UNBOUNDED = 2**31 - 1  # bytes; exactly this value turns off a look at the batch's size before each row
ROWS = 16_384
