"""Records and committed offsets in a Redis that loses them, or most of them; and what must hold then."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from broker_process import BrokerProcess
from counts import note
from faults.redis.load import AGAIN
from faults.redis.log import reported, wait_for_line
from kafka_server import METADATA, OFFSET_COMMIT, OFFSET_FETCH, RawClient, make_batch, run
from korvet_fast.wire.kafka.errors import CODES
from raw_connection import connect, read_places

GROUPS = [f"group-{number}" for number in range(8)]  # of several coordinator partitions
COORDINATOR_AGAIN = {CODES["NOT_COORDINATOR"], CODES["COORDINATOR_LOAD_IN_PROGRESS"]}
ROOM = 1000  # epochs left out when a history breaks (core/broker.py)
R = TypeVar("R")


class Records:
    """Three records in a topic, and offsets that groups committed there; what must hold when all of it is gone."""

    def __init__(self, broker: BrokerProcess) -> None:
        self.broker = broker
        self.places: list[tuple[int, bytes]] = []
        run(self._write)

    async def _write(self) -> None:
        async with connect(self.broker.port) as client:
            await client.create("t")
            for number in range(3):
                self.places.append((await produce_to_leader([self.broker], 0, b"%d" % number), b"%d" % number))
            for group in GROUPS:
                await commit(client, group, self.places[-1][0])

    def check(self) -> None:
        """The loss was told; what is written now, if anything is, gets other offsets and another epoch.

        The broker that coordinates the groups lives, and knows what it has acknowledged.
        """
        assert "t:0: records were lost" in wait_for_line(self.broker, "records were lost")
        told, places = reported(self.broker, "t"), {(0, offset) for offset, _ in self.places}
        note(acknowledged=len(places), lost=len(places), told=len(places & told))  # that they are lost is the fault
        assert told >= places
        assert max(told) == max(places)
        run(self._look)

    async def _look(self) -> None:
        async with connect(self.broker.port) as client:
            while (row := await client.produce("t", make_batch(b"after")))["error_code"]:
                assert row["error_code"] in AGAIN, row
            last = self.places[-1][0]
            assert row["base_offset"] > last
            assert [await read_commit(client, group) for group in GROUPS] == [last] * len(GROUPS)
            assert await read_places(client, "t", start=last + 1) == [(row["base_offset"], b"after")]
            answer: dict[str, Any] = await client.ask(METADATA, 9, topics=[{"name": "t"}])
            (partition,) = answer["topics"][0]["partitions"]
            assert partition["leader_epoch"] == ROOM  # it was taken over once


def create_topic(broker: BrokerProcess) -> None:
    """Of one partition, for commits alone."""

    async def scenario() -> None:
        async with connect(broker.port) as client:
            assert (await client.create("t"))["error_code"] == 0

    run(scenario)


async def try_commit(client: RawClient, group: str, offset: int) -> int:
    """Commit as a client that is no member; returns the error's code."""
    topics = [{"name": "t", "partitions": [{"partition_index": 0, "committed_offset": offset}]}]
    member = {"member_id": "", "generation_id_or_member_epoch": -1}
    answer = await client.ask(OFFSET_COMMIT, 7, group_id=group, topics=topics, **member)
    code: int = answer["topics"][0]["partitions"][0]["error_code"]
    return code


async def commit(client: RawClient, group: str, offset: int) -> None:
    """Until the commit is acknowledged."""
    while code := await try_commit(client, group, offset):
        assert code in COORDINATOR_AGAIN
        await asyncio.sleep(0.02)


async def try_read_commit(client: RawClient, group: str) -> tuple[int, int]:
    """The error's code, and the offset that a group has committed; -1: none."""
    topics = [{"name": "t", "partition_indexes": [0]}]
    answer = await client.ask(OFFSET_FETCH, 7, group_id=group, topics=topics)
    return answer["error_code"], answer["topics"][0]["partitions"][0]["committed_offset"] if answer["topics"] else -1


async def read_commit(client: RawClient, group: str) -> int:
    """Until the broker coordinates the group."""
    while (found := await try_read_commit(client, group))[0]:
        assert found[0] in COORDINATOR_AGAIN
        await asyncio.sleep(0.02)
    return found[1]


def run_and_return(port: int, ask: Callable[[RawClient], Awaitable[R]]) -> R:
    """The broker's answer to a client of its own."""
    answers: list[R] = []

    async def scenario() -> None:
        async with connect(port) as client:
            answers.append(await ask(client))

    run(scenario)
    return answers[0]


async def find_topic_id(client: RawClient) -> bytes:
    answer = await client.ask(METADATA, 12, topics=[{"name": "t"}])
    found: bytes = answer["topics"][0]["topic_id"]
    return found


async def produce_to_leader(brokers: list[BrokerProcess], index: int, value: bytes = b"a record") -> int:
    """The offset of a record that the partition's leader takes."""
    while True:
        for broker in brokers:
            async with connect(broker.port) as client:
                row = await client.produce("t", make_batch(value), index=index)
            if not row["error_code"]:
                return int(row["base_offset"])
            assert row["error_code"] in AGAIN, row
        await asyncio.sleep(0.02)
