"""The driver's commands, carried out by aiokafka."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, Concatenate, ParamSpec

import aiokafka
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewPartitions, NewTopic, RecordsToDelete
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.errors import for_code

from compat.clients.aiokafka.secure import secure
from compat.clients.lines import PATIENCE, pack, pack_headers, unpack, unpack_headers

_Arguments = ParamSpec("_Arguments")
_Answer = dict[str, Any]


def _run(
    work: Callable[Concatenate["Client", _Arguments], Awaitable[_Answer]],
) -> Callable[Concatenate["Client", _Arguments], _Answer]:
    """A command in a loop of its own: nothing stays open between commands."""

    def command(client: "Client", *arguments: _Arguments.args, **named: _Arguments.kwargs) -> _Answer:
        async def limited() -> _Answer:
            return await asyncio.wait_for(work(client, *arguments, **named), PATIENCE)

        return asyncio.run(limited())

    return command


class Client:
    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap

    def _address(self) -> dict[str, Any]:
        return {"bootstrap_servers": self.bootstrap, **secure()}

    @asynccontextmanager
    async def _consumer(self, topic: str, partition: int, group: str | None = None) -> AsyncIterator[Any]:
        """A consumer to which the partition is assigned, and the partition."""
        consumer = AIOKafkaConsumer(**self._address(), group_id=group, enable_auto_commit=False)
        await consumer.start()
        try:
            place = TopicPartition(topic, partition)
            consumer.assign([place])
            yield consumer, place
        finally:
            await consumer.stop()

    @asynccontextmanager
    async def _admin(self) -> AsyncIterator[AIOKafkaAdminClient]:
        admin = AIOKafkaAdminClient(**self._address())
        await admin.start()
        try:
            yield admin
        finally:
            await admin.close()

    def describe(self) -> _Answer:
        return {"client": "aiokafka", "version": aiokafka.__version__}

    @_run
    async def produce(
        self, topic: str, partition: int, acks: str, compression: str, idempotent: bool, records: list[dict[str, Any]]
    ) -> _Answer:
        producer = AIOKafkaProducer(
            **self._address(),
            acks=acks if acks == "all" else int(acks),
            compression_type=None if compression == "none" else compression,
            enable_idempotence=idempotent,
            linger_ms=20,
            max_request_size=4_000_000,
        )
        await producer.start()
        try:
            sent = [
                await producer.send(
                    topic,
                    unpack(record["value"]),
                    unpack(record["key"]),
                    headers=unpack_headers(record["headers"]),
                    partition=partition,
                    timestamp_ms=record.get("timestamp"),
                )
                for record in records
            ]
            await asyncio.gather(*sent)
        finally:
            await producer.stop()
        return {"count": len(records)}

    @_run
    async def consume(self, topic: str, partition: int, offset: int, count: int) -> _Answer:
        async with self._consumer(topic, partition) as (consumer, place):
            consumer.seek(place, offset)
            messages = [await consumer.getone() for _ in range(count)]
        rows = [
            {
                "offset": message.offset,
                "timestamp": message.timestamp,
                "key": pack(message.key),
                "value": pack(message.value),
                "headers": pack_headers(message.headers),
            }
            for message in messages
        ]
        return {"records": rows}

    @_run
    async def walk(self, topic: str, partition: int) -> _Answer:
        async with self._consumer(topic, partition) as (consumer, place):

            async def offsets(count: int) -> list[int]:
                return [(await consumer.getone()).offset for _ in range(count)]

            consumer.seek(place, 0)
            first = await offsets(10)
            consumer.seek(place, 3)
            sought = await offsets(5)
            consumer.pause(place)
            paused = len(await consumer.getmany(timeout_ms=1000))
            consumer.resume(place)
            return {"first": first, "sought": sought, "paused": paused, "resumed": await offsets(5)}

    @_run
    async def commit(self, group: str, topic: str, partition: int, offset: int, metadata: str) -> _Answer:
        async with self._consumer(topic, partition, group) as (consumer, place):
            await consumer.commit({place: (offset, metadata)})
        return {}

    @_run
    async def committed(self, group: str, topic: str, partition: int) -> _Answer:
        place = TopicPartition(topic, partition)
        async with self._admin() as admin:  # the consumer does not hand out the metadata
            found = (await admin.list_consumer_group_offsets(group, partitions=[place]))[place]
        return {"offset": found.offset, "metadata": found.metadata}

    @_run
    async def offset_for_time(self, topic: str, partition: int, ms: int) -> _Answer:
        async with self._consumer(topic, partition) as (consumer, place):
            found = (await consumer.offsets_for_times({place: ms}))[place]
        return {"offset": -1 if found is None else found.offset}

    @_run
    async def list_groups(self) -> _Answer:
        async with self._admin() as admin:
            return {"groups": sorted(each[0] for each in await admin.list_consumer_groups())}

    @_run
    async def describe_group(self, group: str) -> _Answer:
        async with self._admin() as admin:
            ((error, _, state, _, _, members, *_),) = (await admin.describe_consumer_groups([group]))[0].groups
        _check(error)
        return {"state": state, "members": len(members)}

    @_run
    async def create_topic(self, topic: str, partitions: int, configs: dict[str, str]) -> _Answer:
        async with self._admin() as admin:
            answer = await admin.create_topics([NewTopic(topic, partitions, 1, topic_configs=configs)])
        _check(answer.topic_errors[0][1])
        return {}

    @_run
    async def alter_topic(self, topic: str, configs: dict[str, str]) -> _Answer:
        async with self._admin() as admin:
            answer = await admin.alter_configs([ConfigResource(ConfigResourceType.TOPIC, topic, configs)])
        _check(answer[0].resources[0][0])
        return {}

    @_run
    async def topic(self, topic: str, config: str) -> _Answer:
        async with self._admin() as admin:
            (found,) = await admin.describe_topics([topic])
            _check(found["error_code"])
            (answer,) = await admin.describe_configs([ConfigResource(ConfigResourceType.TOPIC, topic)])
        error, _, _, _, entries, *_ = answer.resources[0]
        _check(error)
        return {"partitions": len(found["partitions"]), "value": {entry[0]: entry[1] for entry in entries}[config]}

    @_run
    async def add_partitions(self, topic: str, total: int) -> _Answer:
        async with self._admin() as admin:
            await admin.create_partitions({topic: NewPartitions(total)})
        return {}

    @_run
    async def delete_records(self, topic: str, partition: int, before: int) -> _Answer:
        async with self._admin() as admin:
            await admin.delete_records({TopicPartition(topic, partition): RecordsToDelete(before)})
        return {}

    @_run
    async def delete_topic(self, topic: str) -> _Answer:
        async with self._admin() as admin:
            answer = await admin.delete_topics([topic])
        _check(answer.topic_error_codes[0][1])
        return {}


def _check(code: int) -> None:
    if code:
        raise for_code(code)
