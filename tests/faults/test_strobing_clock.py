"""The broker's clock goes to and fro every 10 ms (reliability F34), or ahead (F32): nothing young is deleted for it."""

import asyncio
import time
from functools import partial
from pathlib import Path

import pytest

from broker_process import BrokerProcess
from faults.clock import HOUR, Clock, read_wall, wait_for_strobe
from faults.redis.load import Load, at_work, create_topic
from faults.several import Several
from kafka_server import make_batch, run
from raw_connection import connect, find_leaders, read_places
from redis_server import PROGRAMS, find_program

PARTITIONS = 6
AHEAD = 2 * HOUR
KEPT = str(HOUR // 2)


@pytest.fixture
def redis_program() -> str:
    """One will do: this is about the broker's clock."""
    return find_program(PROGRAMS[1])


@pytest.mark.parametrize("layout", ["files", "entries", "batches"])
def test_retention_keeps_what_is_young(
    layout: str, clock: Clock, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """While the clock strobes, and while it is two hours ahead; what is old goes, so retention is at work."""

    async def look(topic: str) -> None:
        async with connect(broker.port) as client:
            await client.create(topic, retention_ms=KEPT, segment_bytes="1024")
            now = int(time.time() * 1000)
            offsets = []
            for age in (HOUR, HOUR // 4, 0):
                row = await client.produce(topic, make_batch(b"%d " % age + bytes(1000), time_ms=now - age))
                assert row["error_code"] == 0, row
                offsets.append(row["base_offset"])
            while (await client.fetch(topic, offsets[2]))["log_start_offset"] < offsets[1]:
                await asyncio.sleep(0.02)
            await asyncio.sleep(0.5)  # some more checks, of which none may take anything: nothing is waited for
            left = await read_places(client, topic, start=offsets[1])
            assert [(offset, value.split()[0]) for offset, value in left] == [
                (offsets[1], b"%d" % (HOUR // 4)),
                (offsets[2], b"0"),
            ]

    url, settings = None, ["log.retention.check.interval.ms=50"]
    if layout != "files":
        url = request.getfixturevalue("redis_server").url
        settings.append(f"storage.layout={layout}")
    with (
        BrokerProcess(tmp_path / "data", *settings, store=url, before=clock.before) as broker,
        at_work(broker, retention_ms=KEPT, segment_bytes="16384"),  # of what they write all is young
    ):
        with clock.strobing(0, AHEAD):
            wait_for_strobe(broker)
            run(partial(look, "one"))
            run(partial(look, "two"))
        clock.shift(AHEAD)
        assert abs(read_wall(broker) - time.time() * 1000 - AHEAD) < HOUR / 2
        run(partial(look, "three"))


def test_leases_do_not_stand_on_it(several: Several, clock: Clock) -> None:
    """Two brokers whose clocks strobe: neither takes from the other, though a lease is shorter than the steps.

    And longer than a busy machine lets a broker stand still: then the other would be right.
    """
    quick = ("broker.heartbeat.interval.ms=300", "broker.session.timeout.ms=10000")
    brokers = one, _ = several(2, *quick, before=clock.before)
    found: list[list[int]] = []

    async def find() -> None:
        async with connect(brokers[0].port) as client:
            while set(leaders := await find_leaders(client, "load")) != {broker.port for broker in brokers}:
                await asyncio.sleep(0.02)
            found.append(leaders)

    create_topic(one.bootstrap, "load", PARTITIONS)
    run(find)
    load = Load(",".join(broker.bootstrap for broker in brokers), partitions=PARTITIONS)
    with load.running(), clock.strobing(0, AHEAD, -HOUR):
        for broker in brokers:
            wait_for_strobe(broker)
        load.wait_for(200)
        deadline = time.monotonic() + 6  # twenty heartbeats: this is the fault, nothing is waited for
        while time.monotonic() < deadline:
            load.wait_for(20)
    assert load.check(one.port) == set()
    run(find)
    assert found[0] == found[1]
    assert not [line for broker in brokers for line in broker.log if "records were lost" in line]
