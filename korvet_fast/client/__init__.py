"""A Kafka client: `protocol` without I/O, and a small asyncio client on top of it for the command line."""
