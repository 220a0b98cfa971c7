"""Where message sets of Kafka 0.7 are checked: small ones at once, others beside the loop."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from korvet_fast.core.client_session import ClientSession
from korvet_fast.core.produce.messages import check_messages
from korvet_reference import compression
from korvet_reference.legacy_client import encode_message

EMPTY = encode_message(b"", magic=0)


class Beside(ClientSession):
    """Notes what is done beside the loop, and does it."""

    def __init__(self) -> None:
        self.offloaded = 0

    def offload(self, work: Callable[..., Any], *arguments: object) -> "asyncio.Future[Any]":
        self.offloaded += 1
        done: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        done.set_result(work(*arguments))
        return done


@pytest.mark.parametrize(
    ("messages", "beside"),
    [
        (EMPTY * 1000, 0),
        (encode_message(bytes(200 << 10)), 0),
        (EMPTY * 30_000, 1),  # the loop would be held for 2 ms and more
        (encode_message(bytes(300 << 10)), 1),
        (encode_message(compression.compress(1, encode_message(bytes(60 << 10))), 1) * 3, 1),
    ],
    ids=["small", "one large message", "many messages", "larger", "compressed much"],
)
async def test_what_takes_long_is_checked_beside_the_loop(messages: bytes, beside: int) -> None:
    session = Beside()
    batches = await check_messages(session, messages, 1 << 20)
    assert sum(span for _, span in batches) == len(messages)
    assert session.offloaded == beside
