"""Copies of a log on several brokers: how far each copy is, which records are safe, and which must be truncated."""
