"""Any request at Kafka 0.7's listener: it is answered or closed, within bounds, and others are served all the while.

Two hundred requests over each store in the suite; `make fuzz` draws new ones, and twenty times as many.
"""

import struct
from functools import cache
from pathlib import Path

from hypothesis import event, example, given
from hypothesis import strategies as st

from korvet_reference import compression
from korvet_reference.legacy_client import encode_message, encode_name, encode_request
from legacy_broker import LegacyBroker
from legacy_vectors import EXCHANGES, GZIP, SET, SNAPPY
from twin.profile import examples
from twin.strategies import damaged, message_sets

ERRORS = {0, 1, 3, 4, -1}
LARGEST_ANSWER = 64 << 20  # bytes, to all that is sent on one connection
GROWTH = 256 << 20  # bytes that the broker may take beyond what it had, at its worst
WITNESS = "witness"

shorts = st.one_of(st.integers(-3, 3), st.sampled_from([2**15 - 1, -(2**15)]))
ints = st.one_of(st.integers(-3, 3), st.sampled_from([2**31 - 1, -(2**31), 1 << 20, 100]))
longs = st.one_of(st.integers(-3, 200), st.sampled_from([2**63 - 1, -(2**63), 1 << 40]))


@cache
def bomb(depth: int, size: int) -> bytes:
    """Nested gzip that holds so many zeros."""
    data = encode_message(bytes(size))
    for _ in range(depth):
        data = encode_message(compression.compress(1, data), 1)
    return data


bombs = st.builds(bomb, st.integers(1, 10), st.sampled_from([1, 1 << 16, 1 << 22, 1 << 26]))
names = st.one_of(
    st.sampled_from(["fuzz", "fuzz2", WITNESS, "nope", "", ".", "..", "a/b", "ß", "x" * 255, "x" * 256]).map(
        encode_name
    ),
    st.builds(lambda length, name: struct.pack(">h", length) + name, shorts, st.binary(max_size=6)),
)
sets = st.one_of(
    st.sampled_from([SET, GZIP, SNAPPY, b""]), message_sets, damaged(message_sets), bombs, st.binary(max_size=60)
)


def _produce(name: bytes, partition: int, messages: bytes, claimed: int | None) -> bytes:
    return name + struct.pack(">ii", partition, len(messages) if claimed is None else claimed) + messages


reads = st.builds(
    lambda name, partition, place, size: name + struct.pack(">iqi", partition, place, size), names, ints, longs, ints
)
writes = st.builds(_produce, names, ints, sets, st.one_of(st.none(), st.none(), ints))
bodies = {0: writes, 1: reads, 2: reads, 3: writes, 4: reads}


@st.composite
def requests(draw: st.DrawFn) -> bytes:
    """A frame: a request, or something like one."""
    if draw(st.integers(0, 9)) == 0:
        return draw(st.one_of(st.binary(max_size=100), st.sampled_from(EXCHANGES).map(lambda one: one.sent)))
    number = draw(st.one_of(st.integers(0, 4), st.integers(0, 4), shorts))
    body = bodies.get(number, st.binary(max_size=40))
    if number in (2, 3):
        given_bodies = draw(st.lists(body, max_size=4))
        count = draw(st.one_of(st.just(len(given_bodies)), shorts))
        data = struct.pack(">h", count) + b"".join(given_bodies)
    else:
        data = draw(body)
    frame = encode_request(number, data)
    if draw(st.booleans()):
        return frame
    end = draw(st.integers(0, len(frame)))
    cut = frame[:end]
    if end < 4 or draw(st.booleans()):
        return cut  # the rest never comes
    size = draw(st.one_of(st.just(end - 4), st.integers(-2, 200), st.sampled_from([2**31 - 1, -(2**31), 104857600])))
    return struct.pack(">i", size) + cut[4:]


def read_memory(legacy: LegacyBroker, field: str) -> int:
    """Bytes of resident memory: `VmRSS` now, `VmHWM` at its most."""
    lines = Path(f"/proc/{legacy.process.pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith(f"{field}:"))


def check_answers(data: bytes) -> None:
    """They are whole, with errors that a client of 0.7 knows."""
    while data:
        size, code = struct.unpack_from(">ih", data)
        assert code in ERRORS
        assert 2 <= size <= len(data) - 4
        data = data[4 + size :]


def send(legacy: LegacyBroker, data: bytes) -> bytes:
    """What comes back until the broker closes the connection, which it does when nothing follows."""
    answer = bytearray()
    with legacy.connect() as client:
        try:
            client.socket.sendall(data)
            client.socket.shutdown(1)
            while more := client.socket.recv(1 << 20):
                answer += more
                assert len(answer) < LARGEST_ANSWER
        except (ConnectionResetError, BrokenPipeError):  # it closed before it had read all of it
            event("reset")
            return b""
    return bytes(answer)


def test_any_request_is_answered_or_closed_and_others_are_served(legacy: LegacyBroker) -> None:
    with legacy.connect() as witness:
        witness.produce(WITNESS, 1, SET)
        assert witness.fetch(WITNESS, 1, 0) == SET
        before = read_memory(legacy, "VmRSS")

        @given(st.lists(requests(), min_size=1, max_size=3))
        @example([encode_request(0, _produce(encode_name("fuzz"), 0, bomb(8, 1 << 26), None))] * 3)
        @example([encode_request(0, _produce(encode_name("fuzz"), 0, bomb(9, 1 << 26), None))])
        @example([encode_request(2, struct.pack(">h", 2**15 - 1))])
        @example([encode_request(0, _produce(encode_name("fuzz"), 0, b"", 2**31 - 1))])
        @examples(100)
        def any_requests(frames: list[bytes]) -> None:
            answer = send(legacy, b"".join(frames))
            event("answered" if answer else "silent")
            check_answers(answer)
            assert witness.fetch(WITNESS, 1, 0, len(SET)) == SET, "others are not served"

        any_requests()
        assert read_memory(legacy, "VmHWM") - before < GROWTH
