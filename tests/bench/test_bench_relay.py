"""Bare relays under the load generator, over a real Redis."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks import generator
from benchmarks.contestants import OverRedis
from benchmarks.peers.redis import Redis
from benchmarks.peers.relay import Relay
from benchmarks.peers.relay_loop import WAYS
from benchmarks.rows import Load

SHAPE = ("--batch-bytes", "16384", "--record-bytes", "1024")
PRODUCE = Load("produce", (*SHAPE, "--connections", "4"), ())
FILL = (*SHAPE, "--megabytes", "5", "--seconds", "1", "--warm-up", "0")
FETCH = Load("fetch", (*SHAPE, "--max-bytes", "100000"), (), mode="fetch", fill=FILL)


@pytest.fixture(scope="module")
def redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Redis]:
    generator.build()
    with Redis(tmp_path_factory.mktemp("redis")) as server:
        yield server


@pytest.mark.parametrize("way", WAYS)
def test_a_relay_stores_all_and_gives_it_back(redis: Redis, tmp_path: Path, way: str) -> None:
    """The generator checks offsets and checksums, and the contestant counts the entries in Redis."""
    with Relay(tmp_path, redis, way) as relay:
        contestant = OverRedis(relay, redis, "entries" if way == "c" else "batches")
        for load in (PRODUCE, FETCH, PRODUCE):
            figures = contestant.measure(load, 0.3)
            assert figures["mb_per_s"] > 0
            assert figures["server_cpu_s_per_gb"] <= figures["broker_cpu_s_per_gb"]  # Redis may have its part
