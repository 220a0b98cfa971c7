"""Spark through `format("korvet")` beside Spark through its own Kafka connector: `python -m benchmarks.spark`."""
