"""Messages as lines of the text protocol (docs/text.md), and the answers to them."""

import re
from collections.abc import Sequence
from itertools import chain, count
from typing import Final

from korvet_fast.client.producer.message import ANY_PARTITION, DeliveryFailed, Message, QueuedRecords
from korvet_fast.client.producer.retry_handler import LAST_OFFSET, RowAnswer
from korvet_fast.client.producer.settings import ALL
from korvet_fast.client.protocol.errors import ClientError

TOPIC: Final = re.compile(r"(?!\.{1,2}$)[a-zA-Z0-9._-]{1,249}", re.ASCII)  # Kafka's rule
_NO_LINE: Final = re.compile(rb"[\0\r\n]")
_ANSWER: Final = re.compile(
    rb"V1\|(\d{1,19})\|(?:OK\|partition=(\d{1,10}) offset=(\d{1,19}) hw=\d{1,19}|ERR\|([A-Z_]{1,40})\|(.*))"
)
# A line that is answered with one of these was not stored. With any other it may have been: a leader that lost its
# office while it waited for its replicas says NOT_LEADER.
_NEVER_STORED: Final = frozenset({b"BAD_REQUEST", b"UNKNOWN_COMMAND", b"UNKNOWN_TOPIC", b"UNAUTHORIZED"})
_WHOLE: Final = b"0"  # the id of an answer that is not for one command


def check_text_message(message: Message) -> None:
    """Raise `DeliveryFailed` for what a line cannot say."""
    check_topic(message.topic)
    if message.partition is not None:
        raise DeliveryFailed("the text protocol has the broker choose the partition: leave partition out")
    if message.headers:
        raise DeliveryFailed("a line of the text protocol has no headers: leave them out, or use kafka://")
    if message.timestamp is not None:
        raise DeliveryFailed("the text protocol has the broker set the time: leave timestamp out, or use kafka://")
    if message.value is None:
        raise DeliveryFailed("a line of the text protocol has a value: null is for kafka://")
    if message.key is not None and (not message.key or b":" in message.key):
        raise DeliveryFailed("a key in a line of the text protocol is not empty, and has no colon")
    for name, cell in ("value", message.value), ("key", message.key or b""):
        if not _is_text(cell):
            raise DeliveryFailed(f"the {name} is no text without line ends and NUL, as the text protocol's lines are")


def check_topic(topic: str) -> None:
    """Raise `DeliveryFailed` for a name that breaks Kafka's rule: a broker without error codes cannot say so."""
    if TOPIC.fullmatch(topic) is None:
        raise DeliveryFailed(f"{topic[:20]!r} is no topic's name; it has 1 to 249 of a-z, A-Z, 0-9, '.', '_' and '-'")


def encode_lines(
    records: Sequence[QueuedRecords], acks: int, _kind: int, _producer: tuple[int, int], _sequence: int
) -> bytes:
    """A PRODUCE line for each record; their ids count from 1. Only for what `check_text_message` lets pass."""
    topic = records[0].topic.encode()
    tail = b"all" if acks == ALL else b"%d" % acks
    values = chain.from_iterable(each.row_values() for each in records)
    keys = chain.from_iterable(each.row_keys() for each in records)
    return b"".join([
        b"V1|%d|PRODUCE|%b %b:%b acks=%b\n" % (number, topic, key or b"", value or b"", tail)
        for number, key, value in zip(count(1), keys, values)
    ])  # fmt: skip


def read_answer(line: bytes, number: int) -> RowAnswer:
    """The answer to the line with this id. Raises `ClientError` for what is none."""
    found = _ANSWER.fullmatch(line.removesuffix(b"\r"))
    if found is None:
        raise ClientError(f"{line[:40]!r} is no answer to a PRODUCE")
    identity, partition, offset, code, text = found.groups()
    if code is None and int(identity) == number:
        if int(partition) >= ANY_PARTITION or int(offset) > LAST_OFFSET:
            raise ClientError(f"there is no partition {int(partition)} with an offset {int(offset)}")
        return RowAnswer(int(partition), int(offset))
    if code is None or (int(identity) != number and identity != _WHOLE):
        raise ClientError(f"the answer has the id {int(identity)} instead of {number}")
    sentence = f"{text.decode(errors='replace')} ({code.decode()})"
    return RowAnswer(error=ClientError(sentence), uncertain=code not in _NEVER_STORED)


def _is_text(cell: bytes) -> bool:
    try:
        cell.decode()
    except UnicodeDecodeError:
        return False
    return _NO_LINE.search(cell) is None
