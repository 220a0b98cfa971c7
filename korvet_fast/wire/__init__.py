"""Floor `wire`: the dialects. Parse, route, encode. No sockets, no store, no clock but the broker's."""
