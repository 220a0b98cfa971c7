"""Brokers to measure, each a process of its own."""
