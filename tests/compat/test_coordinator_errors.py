"""A client that asks a coordinator for its offsets before that has loaded the group goes on where the group was."""

from pathlib import Path

import pytest
from aiokafka import AIOKafkaConsumer
from aiokafka import TopicPartition as Assigned

from kafka_server import kafka_server, make_batch, run
from korvet_fast.core.groups.documents import OffsetAndMetadata, TopicPartition
from korvet_fast.errors import Errors


@pytest.mark.parametrize("error", [Errors.NOT_COORDINATOR, Errors.COORDINATOR_LOAD_IN_PROGRESS])
def test_aiokafka_does_not_take_an_error_of_the_group_for_no_offset(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Errors
) -> None:
    async def scenario() -> None:
        async with kafka_server(tmp_path) as server:
            client = await server.connect()
            await client.create("t")
            await client.produce("t", make_batch(b"read before", b"unread"))
            groups = server.broker.groups
            committed = {TopicPartition("t", 0): OffsetAndMetadata(1)}
            assert set((await groups.offsets.commit("g", "", None, -1, committed)).values()) == {""}
            error_of, refusals = groups.partitions.error_of, [error] * 3
            monkeypatch.setattr(
                groups.partitions, "error_of", lambda group: refusals.pop() if refusals else error_of(group)
            )
            consumer = AIOKafkaConsumer(
                bootstrap_servers="{}:{}".format(*server.address),
                group_id="g",
                auto_offset_reset="earliest",
                enable_auto_commit=False,
            )
            consumer.assign([Assigned("t", 0)])
            async with consumer:
                assert (await consumer.getone()).value == b"unread"
            assert refusals == []

    run(scenario)
