"""Spark of any version in a virtual environment of its own, and the jars of its Kafka connector."""
