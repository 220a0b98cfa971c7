"""A member of a group, in aiokafka: reads, commits, tells; leaves on SIGTERM."""

import asyncio

from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener, TopicPartition
from aiokafka.coordinator.assignors.range import RangePartitionAssignor
from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from aiokafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
from aiokafka.errors import BrokerResponseError, KafkaConnectionError, KafkaError

from compat.clients.aiokafka.secure import secure
from compat.clients.lines import Options, Running, Unsupported, tell

_ASSIGNORS = {
    "range": RangePartitionAssignor,
    "roundrobin": RoundRobinPartitionAssignor,
    "sticky": StickyPartitionAssignor,
}


class _Listener(ConsumerRebalanceListener):  # type: ignore[misc]
    """`owned`: what it has. `due`: where to commit, of what was read and is not committed.

    aiokafka calls this from a task of its own: what a poll or a commit returns may have been taken away meanwhile.
    """

    def __init__(self) -> None:
        self.owned: set[TopicPartition] = set()
        self.due: dict[TopicPartition, int] = {}

    async def on_partitions_assigned(self, assigned: set[TopicPartition]) -> None:
        self.owned |= assigned
        tell(assigned=sorted(each.partition for each in assigned))

    async def on_partitions_revoked(self, revoked: set[TopicPartition]) -> None:
        self.owned -= revoked
        for each in revoked:
            self.due.pop(each, None)
        tell(revoked=sorted(each.partition for each in revoked))


def describe_error(error: Exception) -> str:
    """Kafka's name of it."""
    return str(error.message) if isinstance(error, BrokerResponseError) else repr(error)


def find_generation(consumer: AIOKafkaConsumer) -> int:
    """The one its next commit is of; the client tells it nowhere."""
    number: int = consumer._coordinator.generation
    return number


def run(asked: Options) -> None:
    """Until SIGTERM."""
    if asked.protocol == "consumer":
        raise Unsupported("aiokafka has no group.protocol=consumer")
    if asked.strategy not in _ASSIGNORS:
        raise Unsupported(f"aiokafka has no assignor {asked.strategy}")
    asyncio.run(_run(asked))


async def _start(asked: Options) -> AIOKafkaConsumer:
    """aiokafka gives up if no broker answers when it starts, where others go on trying: so it is started again.

    It never asks its bootstrap addresses again: it has to hear of new brokers before those that it knows are gone.
    """
    attempts = 100
    while True:
        consumer = AIOKafkaConsumer(
            bootstrap_servers=asked.bootstrap,
            group_id=asked.group,
            group_instance_id=asked.instance or None,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            session_timeout_ms=asked.session,
            heartbeat_interval_ms=300,
            metadata_max_age_ms=1000,
            partition_assignment_strategy=(_ASSIGNORS[asked.strategy],),
            **secure(),
        )
        try:
            await consumer.start()
        except KafkaConnectionError:
            await consumer.stop()
            attempts -= 1
            if not attempts:
                raise
            await asyncio.sleep(0.1)
        else:
            return consumer


async def _run(asked: Options) -> None:
    running = Running()
    consumer = await _start(asked)
    listener = _Listener()
    due = listener.due
    consumer.subscribe([asked.topic], listener=listener)
    while running:
        pages = await consumer.getmany(timeout_ms=200, max_records=20)
        for place in pages.keys() & listener.owned:
            for record in pages[place]:
                tell(read=[place.partition, record.offset])
            due[place] = pages[place][-1].offset + 1
        if due:
            generation = find_generation(consumer)
            try:
                await consumer.commit()
            except KafkaError as error:
                tell(refused=describe_error(error))  # tried again in the next turn
            else:
                known = {"generation": generation} if generation == find_generation(consumer) else {}
                tell(committed={place.partition: offset for place, offset in due.items()}, **known)
                due.clear()
    await consumer.stop()
    tell(closed=True)
