"""What the requests of Kafka 0.7 do, one file for those that belong together."""
