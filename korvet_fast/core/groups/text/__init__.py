"""Groups of the text protocol: one topic, a generation, and an assignment that the group makes itself."""
