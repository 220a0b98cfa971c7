"""Producers of Python, side by side, at one broker."""
