"""A small asyncio Kafka client, for the command line."""
