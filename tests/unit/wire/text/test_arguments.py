"""Usages and what they read: nothing but a `BadArguments` for any text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from korvet_fast.wire.text.arguments import BadArguments, Usage
from korvet_fast.wire.text.commands import COMMANDS

CONSUME = COMMANDS["CONSUME"].usage


def test_words_and_options_are_read() -> None:
    assert CONSUME.read("t 1 2 encoding=base64 max=7") == {
        "topic": "t",
        "partition": 1,
        "offset": 2,
        "encoding": "base64",
        "max": 7,
    }
    assert Usage("topic partition leader|follower").read("t 0 leader") == {
        "topic": "t",
        "partition": 0,
        "role": "leader",
    }
    assert Usage("").read("") == {}


@pytest.mark.parametrize(
    "text", ["", "t", "t 0", "t 0 -1", "t 0 ²", "t 0 1 max", "t 0 1 =1", "t 0 1 max=1 max=2", "t 0 1 topic=x", "t  0 1"]
)
def test_what_is_wrong_is_refused(text: str) -> None:
    with pytest.raises(BadArguments):
        CONSUME.read(text)


@given(st.text(st.sampled_from("t 01-=max|encodigplas65 \t\xa0"), max_size=40) | st.text(max_size=40))
def test_any_text_is_read_or_refused(text: str) -> None:
    for command in COMMANDS.values():
        try:
            found = command.usage.read(text)
        except BadArguments:
            continue
        assert len(found) == (len(text.split(" ")) if text else 0)  # every word is in it, once


@given(st.integers(0, (1 << 63) - 1), st.integers(0, (1 << 63) - 1))
def test_numbers_keep_their_value(partition: int, offset: int) -> None:
    assert CONSUME.read(f"t {partition} {offset}") == {"topic": "t", "partition": partition, "offset": offset}
