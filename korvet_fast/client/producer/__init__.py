"""The producer: messages in, batches out, each message ends once. The drawing of its stages is in docs/producer.md."""

from korvet_fast.client.producer.async_producer import AsyncProducer
from korvet_fast.client.producer.blocking_producer import Producer
from korvet_fast.client.producer.delivery import Delivery
from korvet_fast.client.producer.message import (
    BufferFull,
    Cancelled,
    DeliveryFailed,
    Expired,
    Message,
    Outcome,
    ProducerBroken,
    ProducerClosed,
    RecordMetadata,
)
from korvet_fast.client.producer.result_stream import ProducerError, Success
from korvet_fast.client.producer.rows import ColumnMetadata, RowsFailed
from korvet_fast.client.producer.transaction_state import ProducerFenced, TransactionError, TransactionsUnavailable

__all__ = [
    "AsyncProducer",
    "BufferFull",
    "Cancelled",
    "ColumnMetadata",
    "Delivery",
    "DeliveryFailed",
    "Expired",
    "Message",
    "Outcome",
    "Producer",
    "ProducerBroken",
    "ProducerClosed",
    "ProducerError",
    "ProducerFenced",
    "RecordMetadata",
    "RowsFailed",
    "Success",
    "TransactionError",
    "TransactionsUnavailable",
]
