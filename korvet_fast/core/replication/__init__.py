"""Copies of a log on several brokers: who has how much of it, what is safe, and what must be truncated."""
