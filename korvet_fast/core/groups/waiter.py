"""Who waits for an answer of a group."""

from typing import TypeAlias

Waiter: TypeAlias = object  # where the answer to a request goes. The groups themselves never look inside.
