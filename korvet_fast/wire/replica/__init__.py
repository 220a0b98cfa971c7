"""What brokers say to each other: Kafka's Fetch and OffsetForLeaderEpoch, and what Kafka has no request for."""
