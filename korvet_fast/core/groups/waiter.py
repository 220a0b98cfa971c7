"""The type of a waiter: a request that waits for an answer of a group."""

from typing import TypeAlias

Waiter: TypeAlias = object  # mostly a future; the groups themselves never look inside
