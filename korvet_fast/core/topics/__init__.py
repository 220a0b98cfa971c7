"""Topics: their settings, their partitions, and the documents that tell of them in the registry."""
