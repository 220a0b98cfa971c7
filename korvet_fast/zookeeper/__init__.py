"""ZooKeeper, where clients of Kafka 0.7 find brokers and topics. It knows nothing of the broker."""
