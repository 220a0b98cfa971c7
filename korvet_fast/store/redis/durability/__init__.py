"""The durability that a server promises for writes, and waiting for it."""
