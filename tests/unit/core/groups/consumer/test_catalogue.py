"""The catalogue of patterns: the topics that fit, or the error; and nothing of the clients that asked."""

import asyncio
import gc
from collections.abc import Callable
from typing import Any, NamedTuple, cast
from weakref import ref

import pytest

from korvet_fast.core.groups.consumer.catalogue import TopicCatalogue
from korvet_fast.core.topics.topics import Topics
from korvet_fast.errors import KorvetError


class Name(str):
    """A string that one can look whether it is still there."""


class FakeTopic(NamedTuple):
    name: str


class FakeTopics(list[FakeTopic]):
    version = 1


async def offload(work: Callable[..., Any], *arguments: object) -> Any:
    return work(*arguments)


def measure_traceback(catalogue: TopicCatalogue, pattern: str) -> int:
    with pytest.raises(KorvetError, match="INVALID_REGULAR_EXPRESSION") as caught:
        catalogue.check(pattern)
    return len(caught.traceback)


def test_a_refused_pattern_keeps_no_frame_alive() -> None:
    topics = FakeTopics([FakeTopic(Name("orders"))])
    catalogue = TopicCatalogue(cast(Topics, topics))
    there = ref(topics[0].name)
    gc.disable()
    try:
        asyncio.run(catalogue.find("(", offload))
        topics.clear()
        assert there() is None
    finally:
        gc.enable()
    assert catalogue.match("(") == []


def test_asking_for_a_refused_pattern_again_adds_nothing() -> None:
    catalogue = TopicCatalogue(cast(Topics, FakeTopics()))
    asyncio.run(catalogue.find("(", offload))
    first = measure_traceback(catalogue, "(")
    assert [measure_traceback(catalogue, "(") for _ in range(10)] == [first] * 10
