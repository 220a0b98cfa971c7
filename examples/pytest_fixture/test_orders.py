"""What a test of yours may look like: it gets the broker's address and uses any Kafka client."""

from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic


def test_an_order_arrives_with_its_key(bootstrap: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic("orders", 1, 1)])["orders"].result(10)
    producer = Producer({"bootstrap.servers": bootstrap})
    producer.produce("orders", key="order-1", value='{"amount": 12}')
    assert producer.flush(10) == 0

    settings = {"bootstrap.servers": bootstrap, "group.id": "billing", "auto.offset.reset": "earliest"}
    consumer = Consumer(settings)
    try:
        consumer.subscribe(["orders"])
        message = consumer.poll(30)
        assert message is not None
        assert message.error() is None
        assert (message.key(), message.value()) == (b"order-1", b'{"amount": 12}')
    finally:
        consumer.close()
