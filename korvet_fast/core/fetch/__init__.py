"""Fetch, whatever the dialect: batches are read within limits, and waited for if there are too few."""
