"""Floor `store`: bytes and keys at rest. No Kafka words."""
