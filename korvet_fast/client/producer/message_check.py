"""What `send` accepts: an error in a message comes to whoever made the message, and not to those who sent others."""

from collections.abc import Sequence
from typing import Any, Final

from korvet_fast.client.producer.message import ANY_PARTITION, Headers, Message

_LAST_TIME: Final = (1 << 63) - 1  # ms; a record's time has 64 bits
_LAST_PARTITION: Final = ANY_PARTITION - 1


def check_message(message: Message) -> Message:
    """The message with its headers as a tuple of their own, which no caller can change any more.

    Raises `TypeError` for another type than the field has, and `ValueError` for a number or a name out of range. Which
    encoding a text has is not for the producer to guess. Empty headers, and None in their place, are none.
    """
    if not isinstance(message, Message):
        raise TypeError(f"a message is {type(message).__name__}, not Message: Message(topic, value)")
    topic, value, key, headers, partition, timestamp, _ = message
    if type(value) is not bytes:  # of most messages the value is, and little else is given: a call takes longer
        _check_cell("value", value)
    if key is not None:
        _check_cell("key", key)
    if not isinstance(topic, str):
        raise TypeError(f"topic is {type(topic).__name__}, not str")
    if partition is not None:
        _check_number("partition", partition, _LAST_PARTITION, "leave it out for the partitioner's choice")
    if timestamp is not None:
        _check_number("timestamp", timestamp, _LAST_TIME, "give ms since 1970, or leave it out for the present")
    if not headers:
        return message if headers == () else message._replace(headers=())
    return message._replace(headers=check_headers(headers))


def check_headers(headers: Headers) -> Headers:
    """Headers as a tuple of pairs. Raises `TypeError` and `ValueError` as `check_message`."""
    if not isinstance(headers, Sequence) or isinstance(headers, str | bytes | bytearray | memoryview):
        raise TypeError(f"headers is {type(headers).__name__}, not a list of pairs (name, value)")
    return tuple(_check_header(header) for header in headers)


def _check_header(header: Any) -> tuple[str, bytes | None]:
    if not isinstance(header, tuple | list) or len(header) != 2:
        raise TypeError(f"a header is {type(header).__name__}, not a pair (name, value)")
    name, value = header
    if not isinstance(name, str):
        raise TypeError(f"a header's name is {type(name).__name__}, not str")
    _check_cell(f"header {name!r}", value)
    try:
        name.encode()
    except UnicodeEncodeError:
        raise ValueError(f"a header's name, {name!r}, is no text that UTF-8 has") from None
    return name, value


def _check_cell(name: str, cell: Any) -> None:
    if cell is not None and not isinstance(cell, bytes):
        raise TypeError(f"{name} is {type(cell).__name__}, not bytes; encode it first, for example with .encode()")


def _check_number(name: str, number: Any, last: int, instead: str) -> None:
    if not isinstance(number, int) or isinstance(number, bool):
        raise TypeError(f"{name} is {type(number).__name__}, not int")
    if not 0 <= number <= last:
        raise ValueError(f"{name} {number} is not from 0 to {last:,}; {instead}")
