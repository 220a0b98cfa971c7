"""An example of your own test: the fixture `korvet` gives the address of a broker, for any Kafka client."""

from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic


def test_an_order_arrives_with_its_key(korvet: str) -> None:
    admin = AdminClient({"bootstrap.servers": korvet})
    admin.create_topics([NewTopic("orders", 1, 1)])["orders"].result(10)
    producer = Producer({"bootstrap.servers": korvet})
    producer.produce("orders", key="order-1", value='{"amount": 12}')
    assert producer.flush(10) == 0

    settings = {"bootstrap.servers": korvet, "group.id": "billing", "auto.offset.reset": "earliest"}
    consumer = Consumer(settings)
    try:
        consumer.subscribe(["orders"])
        message = consumer.poll(30)
        assert message is not None
        assert message.error() is None
        assert (message.key(), message.value()) == (b"order-1", b'{"amount": 12}')
    finally:
        consumer.close()
