"""Documents of groups are the JSON that `json.dumps` gives, made in parts between which others have their turn."""

import asyncio
import json
from base64 import b64encode
from typing import Any

import hypothesis.strategies as st
from hypothesis import given

from korvet_fast.core.fair_queue import BackgroundPace
from korvet_fast.core.groups.encoding import encode, encode_paced
from twin.profile import examples

LARGE = 3 << 14
SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5)
BYTES = st.binary(max_size=5) | st.integers(-3, 3).map(lambda more: bytes(LARGE + more))
NUMBERS = st.sampled_from((1, 2, 4095, 4096, 4097, 10_000)).map(lambda many: list(range(many)))
VALUES = st.recursive(
    SCALARS | BYTES | NUMBERS,
    lambda some: (
        st.lists(some, max_size=4)
        | st.lists(some, max_size=4).map(tuple)
        | st.dictionaries(st.text(max_size=5), some, max_size=4)
    ),
    max_leaves=8,
)


def as_text(value: Any) -> str:
    assert isinstance(value, bytes)
    return b64encode(value).decode()


@examples(200)
@given(VALUES)
def test_the_parts_are_what_json_gives(value: Any) -> None:
    assert b"".join(encode(value)) == json.dumps(value, default=as_text).encode()


def test_others_have_their_turn_while_a_large_document_is_made() -> None:
    async def run() -> None:
        value = {"members": [{"protocols": (("range", bytes(12 << 20)),), "assignment": b"\1"}]}
        making = asyncio.create_task(encode_paced(value, BackgroundPace()))
        turns = 0
        while not making.done():
            await asyncio.sleep(0)
            turns += 1
        assert await making == b"".join(encode(value))
        assert turns > 3

    asyncio.run(run())
