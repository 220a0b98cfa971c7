"""What a client changes is in the log, and thousands of changes do not fill it."""

import logging
from pathlib import Path

import pytest

from core_world import run_broker, run_shared
from korvet_fast.rate_limited_log import SEVERAL
from shared_store import Server


async def test_a_client_that_creates_and_deletes_many_topics_does_not_fill_the_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "korvet_fast")
    async with run_broker(tmp_path) as world:
        topics = world.broker.topics
        made = [await topics.auto_create(f"asked-{number:02}") for number in range(50)]
        for topic in made:
            await topics.grow(topic, 2)
            await topics.alter(topic, {"retention.ms": "5"})
            await topics.delete(topic)
        assert len(caplog.records) == 4 * SEVERAL
        world.clock.seconds += 10
        await topics.create("last", 1, {})
    assert f"topic last: created, 1 partition (and {50 - SEVERAL} more like it since the last line)" in caplog.text


async def test_a_client_that_creates_many_topics_on_several_brokers_does_not_fill_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with run_shared(Server()) as world:
        caplog.set_level(logging.INFO, "korvet_fast")
        caplog.clear()
        for number in range(50):
            await world.broker.topics.auto_create(f"asked-{number:02}")
    assert len(caplog.records) <= 2 * SEVERAL
