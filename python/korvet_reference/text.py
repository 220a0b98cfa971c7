"""The text protocol's bytes: lines, runs of PRODUCE lines, messages."""

import re
from base64 import b64encode
from collections.abc import Sequence
from typing import NoReturn, final
from urllib.parse import quote_from_bytes

from korvet_fast.errors import CodecError
from korvet_reference.header import new_batch, read_batches, record_offset
from korvet_reference.records import Record, read_payload, read_records, write_record
from korvet_reference.varint import Bytes

RUN = 64 * 1024
OVER = bytearray(b"\n")
HEADER_SIZE = 61
LENGTH = 5  # bytes that a record's length may take
_PRODUCE = re.compile(rb"V1\|[^|]+\|PRODUCE\|")
_TOPIC = re.compile(rb"[a-zA-Z0-9._-]{1,249}")
_REPLACED = re.compile("[\n\r\0]")
_NOT_TEXT = b"a line is UTF-8, without NUL, and without CR but at its end"
_USAGE = b"PRODUCE takes: topic key:value [acks=0|1|all]"
_NAME = b"a topic's name has 1 to 249 of the characters a-z, A-Z, 0-9, '.', '_' and '-'"


@final
class Lines:
    """Cuts a byte stream into lines of at most `limit` bytes, and PRODUCE lines that follow each other into runs."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._held = bytearray()
        self._over = False

    @property
    def pending(self) -> int:
        """Bytes held now."""
        return len(self._held)

    @property
    def announced(self) -> int:
        """Always 0: how long a line will be is not known before its end is there."""
        return 0

    def feed(self, data: Bytes, most: int = 1 << 63) -> list[bytearray]:
        """The lines and runs that `data` completes, `most` of them; a line that is too long is a line end, the last."""
        given: list[bytearray] = []
        if self._over:
            return given
        self._held += data
        while len(given) < most and not self._over:
            line, size = self._cut(0)
            if line is None:
                break
            if line is not OVER and _PRODUCE.match(line):
                size = self._extend(line, size)
                line = self._held[:size]
            given.append(line)
            del self._held[:size]
        return given

    def rest(self) -> memoryview | None:
        """Always None: all bytes go through `feed`."""
        return None

    def advance(self, count: int) -> NoReturn:
        """There is no place that bytes could have been put into: always BAD_VALUE."""
        raise CodecError("BAD_VALUE", f"there is no room for {count} bytes")

    def _cut(self, start: int) -> tuple[bytearray | None, int]:
        """The line at `start`, and where what follows it begins."""
        end = self._held.find(b"\n", start)
        line = (self._held[start:] if end < 0 else self._held[start:end]).removesuffix(b"\r")
        if len(line) > self._limit:
            self._over = start == 0
            return OVER, len(self._held)
        return (None, 0) if end < 0 else (line, end + 1)

    def _extend(self, first: bytearray, size: int) -> int:
        """Where the run ends that begins with this PRODUCE line, which ends at `size`."""
        while size < RUN:
            line, end = self._cut(size)
            if line is None or line is OVER or end > RUN or not _PRODUCE.match(line):
                break
            if line.endswith(b" acks=all") != first.endswith(b" acks=all"):
                break
            size = end
        return size


class _Wrong(Exception):
    """The error in the arguments of a line."""


def _read(arguments: bytes) -> tuple[bytes, bytes, bytes]:
    """Topic, key and value."""
    topic, blank, message = arguments.partition(b" ")
    if not blank:
        raise _Wrong(_USAGE)
    if not _TOPIC.fullmatch(topic) or topic in (b".", b".."):
        raise _Wrong(_NAME)
    key, colon, value = message.partition(b":")
    if not colon:
        raise _Wrong(b"a message is written as key:value")
    before, blank, last = value.rpartition(b" ")
    if blank and last.startswith(b"acks="):
        if last not in (b"acks=0", b"acks=1", b"acks=all"):
            raise _Wrong(b"acks is 0, 1 or all")
        value = before
    return topic, key, value


@final
class ProduceRun:
    """A run of PRODUCE lines, as `Lines` gives it: read, made into batches, answered."""

    def __init__(self, data: Bytes) -> None:
        lines = [line.removesuffix(b"\r") for line in bytes(data).split(b"\n")]
        self._all = lines[0].endswith(b" acks=all")
        self._topics: list[bytes] = []
        self._lines: list[tuple[bytes, bytes | tuple[int, bytes, bytes]]] = []  # an id; what is wrong, or a record
        self._placed: dict[int, tuple[int, int]] = {}  # by line: the number of its batch, its place there
        self._partitions: list[int] = []
        for line in lines[:-1]:
            self._lines.append(self._open(line))

    def _open(self, line: bytes) -> tuple[bytes, bytes | tuple[int, bytes, bytes]]:
        try:
            line.decode()
        except UnicodeDecodeError:
            return b"0", _NOT_TEXT
        if b"\r" in line or b"\0" in line:
            return b"0", _NOT_TEXT
        fields = line.split(b"|", 3)
        if len(fields) < 4:
            return b"0", b"a line is V1|id|COMMAND|arguments"
        try:
            topic, key, value = _read(fields[3])
        except _Wrong as error:
            return fields[1], error.args[0]
        if topic not in self._topics:
            self._topics.append(topic)
        return fields[1], (self._topics.index(topic), key, value)

    @property
    def topics(self) -> list[str]:
        """The topics that lines name, in the order of their first lines."""
        return [name.decode() for name in self._topics]

    @property
    def all(self) -> bool:
        """Whether the lines ask for acks=all."""
        return self._all

    def build(
        self, plans: Sequence[tuple[int, int, int]], now: int
    ) -> tuple[list[tuple[int, int, bytearray]], list[int]]:
        """The records as batches, and the turns of topics after them; see the native one."""
        turns = [turn for _, turn, _ in plans]
        open_: list[tuple[int, int, list[bytes]]] = []
        for number, (_, what) in enumerate(self._lines):
            if isinstance(what, bytes) or what[0] >= len(plans) or not plans[what[0]][0]:
                continue
            topic, key, value = what
            partitions, _, most = plans[topic]
            if key:
                partition = _fnv(key) % partitions
            else:
                partition, turns[topic] = turns[topic] % partitions, (turns[topic] + 1) % (1 << 32)
            found = [at for at, row in enumerate(open_) if row[:2] == (topic, partition)]
            batch = found[-1] if found else -1
            records = open_[batch][2] if found else []
            size = _size_of(Record(0, len(records), key or None, value, []))
            if not found or HEADER_SIZE + sum(map(len, records)) + LENGTH + size > most:
                batch, records = len(open_), []
                open_.append((topic, partition, records))
            self._placed[number] = batch, len(records)
            records.append(write_record(Record(0, len(records), key or None, value, [])))
        self._partitions = [partition for _, partition, _ in open_]
        return [(topic, partition, _make(records, now)) for topic, partition, records in open_], turns

    def answer(self, outcomes: Sequence[tuple[str, int, int]], refused: Sequence[str]) -> bytes:
        """The answers to all lines; see the native one."""
        out = bytearray()
        for number, (identity, what) in enumerate(self._lines):
            out += b"V1|" + identity
            batch, place = self._placed.get(number, (len(outcomes), 0))
            if isinstance(what, bytes):
                out += b"|ERR|BAD_REQUEST|" + what
            elif batch >= len(outcomes):
                unknown = "STORAGE_ERROR|nothing is known of this record"
                out += b"|ERR|" + (refused[what[0]] if what[0] < len(refused) else unknown).encode()
            elif outcomes[batch][0]:
                out += b"|ERR|" + outcomes[batch][0].encode()
            else:
                _, base, watermark = outcomes[batch]
                out += b"|OK|partition=%d offset=%d hw=%d" % (self._partitions[batch], base + place, watermark)
            out += b"\n"
        return bytes(out)


def _make(records: list[bytes], now: int) -> bytearray:
    return new_batch(b"".join(records), 0, [now] * len(records), 0, len(records) - 1)


def _size_of(record: Record) -> int:
    """Bytes of a record, those of its length not counted."""
    data = write_record(record)
    prefix = next(at for at, byte in enumerate(data) if byte < 0x80) + 1
    return len(data) - prefix


def _fnv(key: bytes) -> int:
    """FNV-1a, 32 bits."""
    found = 0x811C9DC5
    for byte in key:
        found = (found ^ byte) * 0x01000193 % (1 << 32)
    return found


def write_messages(
    batches: Bytes,
    start: int,
    limit: int,
    encoding: int,
    messages: int,
    size: int,
    value: int,
    decompressed: int,
) -> tuple[bytearray, int, int, bool]:
    """(text, messages, next, full): the messages from `start` up to `limit`; see the native one."""
    if encoding not in (0, 1, 2):
        raise CodecError("BAD_VALUE", "there is no such encoding")
    out, many, following = bytearray(), 0, start
    for batch, data in read_batches(batches):
        if batch.last_offset < start:
            continue
        payload = b"" if batch.control else read_payload(batch.compression, data[HEADER_SIZE:], decompressed)
        decompressed -= len(payload) if batch.compression and not batch.control else 0
        for record in () if batch.control else read_records(batch.count, payload):
            offset, text = record_offset(batch, record.offset_delta), record.value or b""
            if offset < start:
                continue
            fits = len(text) <= value
            if not fits and not many and offset < limit and messages:
                raise CodecError("OVERSIZE", "a value is larger than an answer may be")
            if not fits or offset >= limit or many >= messages or (many and len(out) + len(text) > size):
                return out, many, following, True
            out += b"%s%d:%s" % (b"," if many else b"", offset, _encode(text, encoding))
            many, following = many + 1, offset + 1
        following = max(following, batch.last_offset + 1)
    return out, many, following, False


def _encode(value: bytes, encoding: int) -> bytes:
    if encoding == 1:
        return quote_from_bytes(value, safe="!\"#$&'()*+/:;<=>?@[\\]^`{|}~").encode()
    if encoding == 2:
        return b64encode(value)
    return _REPLACED.sub("\ufffd", value.decode(errors="replace")).encode()
