"""Requests of one connection that are on their way together: their order, and what they leave to each other."""

from pathlib import Path
from typing import Any

from kafka_server import CREATE_TOPICS, OFFSET_COMMIT, OFFSET_FETCH, RawClient, error_of, kafka_server, make_batch, run


def send_commit(client: RawClient, partitions: int, offset: int) -> None:
    """A simple consumer's commit of this offset for so many partitions."""
    rows = [{"partition_index": index, "committed_offset": offset} for index in range(partitions)]
    values = {"group_id": "g", "generation_id_or_member_epoch": -1, "member_id": ""}
    client.send(OFFSET_COMMIT, 8, values | {"topics": [{"name": "t", "partitions": rows}]})


async def committed(client: RawClient, index: int) -> Any:
    topics = [{"name": "t", "partition_indexes": [index]}]
    answer = await client.ask(OFFSET_FETCH, 7, group_id="g", topics=topics)
    return answer["topics"][0]["partitions"][0]["committed_offset"]


def test_a_small_commit_does_not_overtake_a_large_one(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with kafka_server(tmp_path) as server:
            client = await server.connect()
            topic = {"name": "t", "num_partitions": 300, "replication_factor": 1}
            answer = await client.ask(CREATE_TOPICS, 7, topics=[topic], timeout_ms=30_000)
            assert error_of(answer["topics"][0]) == ""
            for many in (100, 300):  # it waits for its turn, and for memory too
                for offset, partitions in enumerate((many, 1), many):
                    send_commit(client, partitions, offset)
                for _ in range(2):
                    await client.reply()
                assert [await committed(client, index) for index in (0, 1)] == [many + 1, many]

    run(scenario)


def test_a_fetch_that_was_answered_at_once_leaves_the_room_to_the_one_that_waits(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with kafka_server(tmp_path) as server:
            client = await server.connect()
            topic = {"name": "t", "num_partitions": 2, "replication_factor": 1}
            await client.ask(CREATE_TOPICS, 7, topics=[topic], timeout_ms=30_000)
            size = 0
            for index in (0, 1, 1, 1, 1):
                batch = make_batch(bytes(100_000))
                size += len(batch) * index
                assert error_of(await client.produce("t", batch, index=index)) == ""
            client.send_fetch("t", 0, index=1, min_bytes=1 << 24, max_wait_ms=300)
            client.send_fetch("t", 0, index=0)
            answer = await client.reply()
            await client.reply()
            assert len(answer["responses"][0]["partitions"][0]["records"]) == size

    run(scenario)
