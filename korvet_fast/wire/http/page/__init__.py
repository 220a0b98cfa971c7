"""The page for people: what this broker holds and does, and a few changes."""
