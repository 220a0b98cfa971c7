"""How fast clients may create and delete partitions (KIP-599), and what they are told who are faster."""

import asyncio
import time
from pathlib import Path
from typing import Any

from core_world import StillClock
from kafka_messages import CATALOG
from kafka_server import (
    CREATE_PARTITIONS,
    CREATE_TOPICS,
    DELETE_TOPICS,
    METADATA,
    RawClient,
    error_of,
    kafka_server,
    run,
)

SLOW = ("controller.mutation.rate=10", "controller.mutation.burst=5")


async def create(client: RawClient, name: str, partitions: int, version: int = 7, **values: Any) -> dict[str, Any]:
    topic = {"name": name, "num_partitions": partitions, "replication_factor": 1}
    return await client.ask(CREATE_TOPICS, version, topics=[topic], **{"timeout_ms": 30_000} | values)


def test_finding_3_5_topics_are_made_of_names_in_metadata_no_faster_than_the_quota_lets(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with kafka_server(tmp_path, "controller.mutation.rate=10", "controller.mutation.burst=100") as server:
            client = await server.connect()
            began = time.monotonic()
            topics = [{"name": f"topic-{number}"} for number in range(1_000)]
            answer = await client.ask(METADATA, 9, topics=topics, allow_auto_topic_creation=True)
            allowed = 100 + 10 * (time.monotonic() - began)
            errors = [error_of(row) for row in answer["topics"]]
            assert set(errors) == {"", "UNKNOWN_TOPIC_OR_PARTITION"}
            assert 100 <= errors.count("") <= allowed + 1
            assert len(server.broker.topics) == errors.count("")

    run(scenario)


def test_one_large_topic_is_made_in_one_go_and_the_next_has_to_wait_for_ten_seconds_at_most(tmp_path: Path) -> None:
    clock = StillClock()  # making it takes seconds on a busy machine

    async def scenario() -> None:
        async with kafka_server(tmp_path, clock=clock) as server:
            client = await server.connect()
            assert error_of((await create(client, "large", 15_000))["topics"][0]) == ""
            answer = await create(client, "next", 1)
            assert error_of(answer["topics"][0]) == "THROTTLING_QUOTA_EXCEEDED"
            assert 5_000 < answer["throttle_time_ms"] <= 10_010

    run(scenario)


def test_those_who_know_the_error_are_told_when_to_come_again(tmp_path: Path) -> None:
    clock = StillClock()

    async def scenario() -> None:
        async with kafka_server(tmp_path, *SLOW, clock=clock) as server:
            client = await server.connect()
            assert error_of((await create(client, "a", 6))["topics"][0]) == ""
            grown = await client.ask(
                CREATE_PARTITIONS, 3, topics=[{"name": "a", "count": 7, "assignments": None}], timeout_ms=1000
            )
            gone = await client.ask(DELETE_TOPICS, 6, topics=[{"name": "a"}], timeout_ms=1000)
            for answer, rows in ((grown, "results"), (gone, "responses")):
                assert error_of(answer[rows][0]) == "THROTTLING_QUOTA_EXCEEDED"
                assert 0 < answer["throttle_time_ms"] <= 200
            planned = await create(client, "b", 1, validate_only=True)
            assert (error_of(planned["topics"][0]), planned["throttle_time_ms"]) == ("", 0)
            clock.seconds += gone["throttle_time_ms"] / 1000
            gone = await client.ask(DELETE_TOPICS, 6, topics=[{"name": "a"}], timeout_ms=1000)
            assert error_of(gone["responses"][0]) == ""

    run(scenario)


def test_requests_of_older_versions_wait_as_long_as_they_allow(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with kafka_server(tmp_path, *SLOW) as server:
            client = await server.connect()
            began = time.monotonic()
            for name, partitions in (("a", 6), ("b", 6), ("c", 6), ("d", 600)):  # and then nothing for a minute
                answer = await create(client, name, partitions, version=5)
                assert (error_of(answer["topics"][0]), answer["throttle_time_ms"]) == ("", 0)
            assert time.monotonic() - began > 1.3
            late = await create(client, "e", 1, version=5, timeout_ms=1)
            assert error_of(late["topics"][0]) == "REQUEST_TIMED_OUT"

    run(scenario)


def test_those_who_wait_are_answered_when_memory_is_short_or(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with kafka_server(tmp_path, *SLOW) as server:
            client = await server.connect()
            assert error_of((await create(client, "a", 5000))["topics"][0]) == ""
            async with asyncio.timeout(120):  # the quota makes it wait for longer, and so does the request
                asked = asyncio.create_task(create(client, "b", 1, version=4, timeout_ms=600_000))
                while not asked.done():  # it may not have come yet
                    for connection in server.server.connections:
                        connection.release_memory()
                    await asyncio.sleep(0.01)
            assert error_of((await asked)["topics"][0]) == "REQUEST_TIMED_OUT"

    run(scenario)


def test_topics_are_not_made_for_a_client_that_has_gone(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with kafka_server(tmp_path) as server:
            session = server.dialect.session("test")
            asked = {"topics": [{"name": f"topic-{number}"} for number in range(1_000)]}
            header = {"api_key": METADATA, "api_version": 9, "correlation_id": 1, "client_id": None}
            frame = CATALOG[METADATA].request.encode(header | asked | {"allow_auto_topic_creation": True}, 9)
            answering = asyncio.ensure_future(session.handle(bytearray(frame)))
            async with asyncio.timeout(120):
                while not len(server.broker.topics):
                    await asyncio.sleep(0)
                session.close()
                await answering
            assert 0 < len(server.broker.topics) < 10

    run(scenario)
