"""Floor `net`: sockets, the order of replies, limits. It knows a dialect by `wire.dialect` only, and no topics."""
