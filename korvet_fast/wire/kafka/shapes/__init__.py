"""Kafka's message shapes as tables, one line per field, compiled once by `korvet_fast._native.Schema`."""
