"""Handlers of the commands, one file for related commands."""
