"""Handlers of Kafka 0.7's requests, one file for related requests."""
