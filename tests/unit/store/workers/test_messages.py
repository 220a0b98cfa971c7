"""Messages between workers: what is packed is unpacked, and no bytes are anything but a message or an error."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from korvet_fast.store.workers import messages
from korvet_fast.store.workers.messages import HEAD, Message, Verb, pack_message, read_length, unpack_message

MESSAGES = st.builds(
    Message,
    st.sampled_from(Verb),
    st.integers(0, 2**32 - 1),
    st.lists(st.none() | st.binary(max_size=200), max_size=20),
)


@given(MESSAGES)
def test_what_is_packed_is_unpacked(message: Message) -> None:
    frame = pack_message(message)
    assert read_length(frame[: HEAD.size]) == len(frame) - HEAD.size
    assert unpack_message(frame[HEAD.size :]) == message


@given(st.binary(max_size=100))
def test_any_bytes_are_a_message_or_an_error(body: bytes) -> None:
    with contextlib.suppress(ValueError):
        message = unpack_message(body)
        assert pack_message(message)[HEAD.size :] == body


@given(MESSAGES, st.integers(0, 300), st.integers(0, 255))
def test_a_damaged_frame_is_a_message_or_an_error(message: Message, at: int, value: int) -> None:
    body = bytearray(pack_message(message)[HEAD.size :])
    body[at % len(body)] = value
    with contextlib.suppress(ValueError):
        assert sum(len(field or b"") for field in unpack_message(bytes(body)).fields) <= len(body)


@pytest.mark.parametrize("size", [0, 4, messages.LIMIT + 1, 2**32 - 1])
def test_a_frame_of_impossible_size_is_refused(size: int) -> None:
    with pytest.raises(ValueError, match=f"a frame of {size} bytes"):
        read_length(HEAD.pack(size))


def test_a_message_above_the_limit_is_not_packed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(messages, "LIMIT", 100)
    fits = Message(Verb.SAVE, 1, [b"k", bytes(100 - 5 - 2 * 4 - 1)])
    assert read_length(pack_message(fits)[: HEAD.size]) == 100
    with pytest.raises(ValueError, match="101 bytes, and workers tell each other at most 100 at once"):
        pack_message(fits._replace(fields=[b"ke", *fits.fields[1:]]))
