"""Produce, whatever the dialect: batches are checked, appended in order, and acknowledged as asked for."""
