"""The protocol of Kafka 0.6 and 0.7 (docs/legacy.md): five requests, strictly in order, and no answer to a produce."""
