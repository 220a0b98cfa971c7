"""Consumer groups: their protocols as pure tables, the groups, and the coordinator that stores and serves them."""
