"""Apache Kafka from Maven artifacts: the broker and its Java tools."""
