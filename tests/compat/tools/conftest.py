"""The stores that programs over Kafka are run over."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from compat.tools.programs import Topics
from compat.world import STORES, World, open_world


@pytest.fixture(params=STORES)
def world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    with open_world(request.param, tmp_path) as opened:
        yield opened


@pytest.fixture
def topics(world: World) -> Topics:
    """Those of the world's broker: `in` and `out` are there, the others a program makes."""
    topics = Topics(world.broker.bootstrap)
    topics.create("in", "out")
    return topics
