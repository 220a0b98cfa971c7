"""Consumer groups: the protocol as a pure table, the members it moves, and the coordinator that keeps them."""
