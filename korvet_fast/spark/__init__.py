"""Kafka topics as a PySpark data source, `format("korvet")`: Arrow record batches in and out, no row in Python."""
