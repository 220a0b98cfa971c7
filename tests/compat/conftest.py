"""Fixtures of the tests with real clients."""

from collections.abc import Iterator
from uuid import uuid4

import pytest

from broker_process import BrokerProcess


@pytest.fixture(scope="module")
def tidy_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    """Small segments, and retention looks five times a second."""
    settings = ("log.segment.bytes=4096", "log.retention.check.interval.ms=200", "auto.create.topics.enable=false")
    with BrokerProcess(tmp_path_factory.mktemp("life") / "data", *settings) as running:
        yield running


@pytest.fixture
def topic() -> str:
    """A name of the test's own."""
    return f"t-{uuid4().hex[:12]}"
