"""Floor `net`: sockets, ordering, limits. Knows a dialect only by its interface, and nothing of topics."""
