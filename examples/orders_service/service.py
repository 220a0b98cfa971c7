"""A web service that keeps its data in a topic: orders come in by HTTP, totals are read from the topic.

    korvet-fast serve
    KAFKA=127.0.0.1:9092 uvicorn examples.orders_service.service:app

`POST /orders` produces an order, and answers when the broker has stored it. `GET /customers/{name}` consumes the orders
that were stored since the last time, and answers what this customer's orders add up to. The service itself stores
nothing: after a restart it reads the topic from its start, and any number of such services come to the same totals.

Orders are sent with Korvet Fast's producer, which says whether an order that was not confirmed can be stored all the
same. They are read with aiokafka, unmodified. Both work on the event loop that FastAPI has.
"""

import asyncio
import logging
import os
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiokafka import AIOKafkaConsumer, ConsumerRecord
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.errors import KafkaError, NoError, TopicAlreadyExistsError, for_code
from fastapi import FastAPI, HTTPException
from pydantic import BaseModel, Field, ValidationError

from korvet_fast.client import AsyncProducer
from korvet_fast.client.producer import DeliveryFailed

TOPIC = "orders"
PARTITIONS = 3
PATIENCE = 5.0  # seconds that a request waits for the broker
ANSWER = 2.0  # seconds that the broker has for one answer; then the producer tries again

logger = logging.getLogger("uvicorn.error")


class Order(BaseModel):
    customer: str = Field(min_length=1, max_length=100)
    cents: int = Field(gt=0, le=100_000_000)


class Stored(BaseModel):
    """Where the broker stored an order."""

    partition: int
    offset: int


class Total(BaseModel):
    customer: str
    orders: int
    cents: int


class Totals:
    """The total of each customer's orders. Every service reads all partitions, so the consumer has no group."""

    def __init__(self, consumer: AIOKafkaConsumer) -> None:
        self._consumer = consumer
        self._cents: defaultdict[str, list[int]] = defaultdict(list)
        self._reading = asyncio.Lock()

    async def read(self) -> None:
        """Count every order that is stored now. Raises `KafkaError`."""
        async with self._reading:
            consumer = self._consumer
            ends = await consumer.end_offsets(consumer.assignment())
            for partition, end in ends.items():
                while await consumer.position(partition) < end:
                    self._add(await consumer.getone(partition))

    def _add(self, record: ConsumerRecord) -> None:
        try:
            order = Order.model_validate_json(record.value or b"")
        except ValidationError as error:  # another program can write to the topic too
            logger.warning("skipped the record %s of partition %s: %s", record.offset, record.partition, error)
        else:
            self._cents[order.customer].append(order.cents)

    def of(self, customer: str) -> Total:
        cents = self._cents.get(customer, [])
        return Total(customer=customer, orders=len(cents), cents=sum(cents))


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    """Connect to the broker, and count the orders that the topic holds, before the first request is taken."""
    bootstrap = os.environ.get("KAFKA", "127.0.0.1:9092")
    await create_topic(bootstrap)
    async with (
        AsyncProducer(bootstrap, delivery_timeout_ms=PATIENCE * 1000, request_timeout_ms=ANSWER * 1000) as producer,
        AIOKafkaConsumer(TOPIC, bootstrap_servers=bootstrap, auto_offset_reset="earliest") as consumer,
    ):
        app.state.producer, app.state.totals = producer, Totals(consumer)
        await app.state.totals.read()
        yield


async def create_topic(bootstrap: str) -> None:
    """Create the topic, unless it exists. Raises `KafkaError`."""
    admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
    await admin.start()
    try:
        answer = await admin.create_topics([NewTopic(TOPIC, PARTITIONS, 1)])
    finally:
        await admin.close()
    for _, code, *_ in answer.topic_errors:
        error = for_code(code)
        if error not in (NoError, TopicAlreadyExistsError):
            raise error(f"the topic {TOPIC} cannot be created")


app = FastAPI(title="Orders", lifespan=lifespan)


@app.post("/orders", status_code=201)
async def take_order(order: Order) -> Stored:
    """Store an order. 503: the broker did not confirm it; the sentence says whether it is not written, or unknown."""
    value, key = order.model_dump_json().encode(), order.customer.encode()
    try:
        stored = await app.state.producer.send(TOPIC, value, key=key)
    except DeliveryFailed as error:
        raise HTTPException(503, f"the broker did not confirm the order, which is {error.outcome}: {error}") from error
    return Stored(partition=stored.partition, offset=stored.offset)


@app.get("/customers/{name}")
async def find_total(name: str) -> Total:
    """The total of this customer's orders, with every order that was confirmed before. 503: the broker is away."""
    try:
        async with asyncio.timeout(PATIENCE):
            await app.state.totals.read()
    except (KafkaError, TimeoutError) as error:
        raise HTTPException(503, f"the orders cannot be read to their end: {error!r}") from error
    return app.state.totals.of(name)
