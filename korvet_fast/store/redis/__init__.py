"""Records in Redis Streams."""
