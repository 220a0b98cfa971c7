"""The dialect between brokers: Kafka's Fetch and OffsetForLeaderEpoch, and what Kafka has no request for."""
