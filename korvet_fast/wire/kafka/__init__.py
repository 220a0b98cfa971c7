"""The modern Kafka protocol: one table of routes, one file per API, shapes as data."""
