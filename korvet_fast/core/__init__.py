"""Floor `core`: topics, partitions, producers. No wire types, no byte parsing; sees `store.interface` only."""
