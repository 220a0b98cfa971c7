"""A follower whose disk does not flush: what it has not flushed does not count, and nothing is acknowledged on it."""

import asyncio
from pathlib import Path

from faults.conftest import Flushes
from faults.redis.load import Load
from faults.replication.trio import Trio
from kafka_server import error_of, make_batch, run
from raw_connection import connect

# The follower stays in sync, and nobody is taken for dead, however slow the machine is.
PATIENT = ("replica.lag.timeout=60000", "broker.heartbeat.interval.ms=1000", "broker.session.timeout.ms=60000")
LEADER, FOLLOWER = 1, 2


def test_what_a_follower_has_not_flushed_is_not_acknowledged(tmp_path: Path, flushes: Flushes) -> None:
    async def scenario() -> None:
        async with connect(trio.brokers[LEADER].port) as client:
            while error := error_of(await client.produce("t", make_batch(b"kept"))):
                assert error == "NOT_LEADER_OR_FOLLOWER", error
                await asyncio.sleep(0.02)
            flushes.hang()
            row = await client.produce("t", make_batch(b"waits"), timeout_ms=3000)
            assert error_of(row) == "REQUEST_TIMED_OUT"
            assert (await client.fetch("t", 0))["high_watermark"] == 1
            flushes.heal()
            while (await client.fetch("t", 0))["high_watermark"] == 1:
                await asyncio.sleep(0.02)

    trio = Trio(tmp_path, more=PATIENT)
    trio.brokers[FOLLOWER].before = flushes.before
    with trio:
        for topic in ("t", "load"):
            trio.create(topic, 1)
            trio.appoint(topic, 0, LEADER)
            trio.wait_for(topic, lambda one: one.leader == LEADER and len(one.isrs) == 3)
        load = Load(trio.bootstrap, partitions=1)
        with load.running():
            load.wait_for(20)
            run(scenario)
            load.wait_for(20)
        assert load.check(trio.brokers[LEADER].port) == set()
