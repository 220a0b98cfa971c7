"""How each dialect connects to a broker, and what carries a request there."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, NamedTuple

from korvet_fast.client.connection import Connection, connect, open_transport
from korvet_fast.client.producer.broker_producer import ProduceRequest
from korvet_fast.client.producer.config import ProducerConfig
from korvet_fast.client.producer.dialects import KAFKA, LEGACY, TEXT
from korvet_fast.client.producer.legacy_stream import LegacyStream
from korvet_fast.client.producer.produce_stream import ProduceStream
from korvet_fast.client.producer.settings import NO_RESPONSE
from korvet_fast.client.producer.text_stream import TextStream
from korvet_fast.client.protocol.errors import ClientError
from korvet_fast.endpoint import Address
from korvet_fast.wire.kafka.shapes.message import Message
from korvet_fast.wire.kafka.shapes.produce import PRODUCE

BrokerConnection = Connection | ProduceStream
Answer = Mapping[str, Any] | None  # of Kafka's Produce; None: there is none, or each row has its own in the request


class Wire(NamedTuple):
    """Both functions raise `ClientError`."""

    connect: Callable[[Address, ProducerConfig], Awaitable[Any]]
    produce: Callable[[Any, ProduceRequest, ProducerConfig], Awaitable[Answer]]


def _produce_message(config: ProducerConfig) -> Message:
    # From version 12 on a broker adds partitions to transactions itself, and ends them in another way (KIP-890).
    return PRODUCE if config.transactional_id is None else PRODUCE._replace(highest=11)


async def _connect_kafka(address: Address, config: ProducerConfig) -> Connection:
    connection = await connect(address, config.request_timeout, config.answer_bytes, config.security)
    try:
        connection.version(_produce_message(config))  # a broker without it is as good as none
    except ClientError:
        await connection.close()
        raise
    return connection


async def _produce_kafka(connection: Connection, request: ProduceRequest, config: ProducerConfig) -> Answer:
    values = request.values(config)
    if config.acks == NO_RESPONSE:
        await connection.notify(_produce_message(config), values)
        return None
    return await connection.request(_produce_message(config), values)


async def _connect_text(address: Address, config: ProducerConfig) -> TextStream:
    return await open_transport(
        address,
        config.connect_timeout,
        lambda: TextStream(address, config.request_timeout, config.answer_bytes),
        config.security,
    )


async def _connect_legacy(address: Address, config: ProducerConfig) -> LegacyStream:
    return await open_transport(address, config.connect_timeout, lambda: LegacyStream(address, config.request_timeout))


async def _produce_stream(stream: ProduceStream, request: ProduceRequest, _config: ProducerConfig) -> Answer:
    return await stream.produce(request)


WIRES: Final = {
    KAFKA.scheme: Wire(_connect_kafka, _produce_kafka),
    TEXT.scheme: Wire(_connect_text, _produce_stream),
    LEGACY.scheme: Wire(_connect_legacy, _produce_stream),
}
