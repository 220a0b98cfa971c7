"""A topic of 0.7 that another client makes while a PRODUCE waits for its own turn to make it."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from korvet_fast.wire.legacy import topics
from korvet_fast.wire.legacy.api import produce
from korvet_fast.wire.legacy.body import Malformed

HELLO = b"\0\0\0\x06\0\xf7\xb1\xca\xe0hello"


ANYBODY: Any = SimpleNamespace(may=lambda *_: True)  # a session that may do everything


@pytest.fixture
def raced(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody knows the topic, it would get two partitions, and somebody else has made it with one."""

    async def find(*_: Any) -> None:
        return None

    async def create(*_: Any) -> Any:
        return SimpleNamespace(partitions=[object()], config=SimpleNamespace(legacy=True, max_message_bytes=1000))

    monkeypatch.setattr(produce, "find_topic", find)
    monkeypatch.setattr(produce, "create_topic", create)
    monkeypatch.setattr(produce, "count_partitions", lambda *_: 2)
    monkeypatch.setattr(topics, "count_partitions", lambda *_: 2)


def test_a_partition_that_it_did_not_get_is_refused(raced: None) -> None:
    with pytest.raises(Malformed, match="there is no partition 1 of topic 'raced'"):
        asyncio.run(produce._append(ANYBODY, ("raced", 1, HELLO)))  # type: ignore[arg-type]


def test_any_partition_is_one_that_it_has(raced: None, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    async def check(*_: Any) -> list[Any]:
        return [object()]

    async def led(_: Any, __: Any, index: int) -> None:
        asked.append(index)
        raise LookupError

    monkeypatch.setattr(produce, "check_messages", check)
    monkeypatch.setattr(produce, "refresh_leadership", led)
    for _ in range(8):
        with pytest.raises(LookupError):
            asyncio.run(produce._append(ANYBODY, ("raced", -1, HELLO)))  # type: ignore[arg-type]
    assert asked == [0] * 8
