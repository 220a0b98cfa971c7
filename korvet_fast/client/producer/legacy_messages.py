"""Messages as Kafka 0.7 has them (docs/legacy.md): a payload and its checksum, in requests that nobody answers."""

from collections.abc import Sequence
from itertools import chain
from struct import Struct
from typing import Final
from zlib import crc32

from korvet_fast.client.producer.message import ANY_PARTITION, DeliveryFailed, Message, QueuedRecords
from korvet_fast.client.producer.text_lines import check_topic

_MESSAGE: Final = Struct(">ibbI")  # length of what follows, magic 1, no compression, CRC-32 of the payload
_HEAD: Final = 6  # bytes of magic, attributes and checksum
_SIZES: Final = Struct(">ihh")  # of the request, its number, of the topic's name
_SET: Final = Struct(">ii")  # partition, bytes of the messages
_PRODUCE: Final = 0
_ANY: Final = -1  # the broker takes any partition


def check_legacy_message(message: Message) -> None:
    """Raise `DeliveryFailed` for what a message of Kafka 0.7 cannot have."""
    check_topic(message.topic)
    if message.key is not None:
        raise DeliveryFailed("a message of Kafka 0.7 has no key: leave key out, or use kafka://")
    if message.headers:
        raise DeliveryFailed("a message of Kafka 0.7 has no headers: leave them out, or use kafka://")
    if message.timestamp is not None:
        raise DeliveryFailed("a message of Kafka 0.7 has no time: leave timestamp out, or use kafka://")
    if message.value is None:
        raise DeliveryFailed("a message of Kafka 0.7 has a payload: null is for kafka://")


def encode_messages(
    records: Sequence[QueuedRecords], _acks: int, _kind: int, _producer: tuple[int, int], _sequence: int
) -> bytes:
    """A set of messages of magic 1. Only for what `check_legacy_message` lets pass."""
    payloads = [value or b"" for value in chain.from_iterable(each.row_values() for each in records)]
    return b"".join([_MESSAGE.pack(len(each) + _HEAD, 1, 0, crc32(each)) + each for each in payloads])


def produce_head(topic: str, partition: int, size: int) -> bytes:
    """A PRODUCE request up to its `size` bytes of messages."""
    name = topic.encode()
    index = _ANY if partition == ANY_PARTITION else partition
    rest = name + _SET.pack(index, size)
    return _SIZES.pack(4 + len(rest) + size, _PRODUCE, len(name)) + rest
