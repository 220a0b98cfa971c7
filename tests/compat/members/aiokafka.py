"""A member of a group, in aiokafka: reads, commits, tells; leaves on SIGTERM."""

import asyncio

from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener, TopicPartition
from aiokafka.coordinator.assignors.range import RangePartitionAssignor
from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from aiokafka.errors import KafkaError

from compat.members.report import Running, options, tell

asked = options()
assignors = {"range": RangePartitionAssignor, "roundrobin": RoundRobinPartitionAssignor}


class Listener(ConsumerRebalanceListener):  # type: ignore[misc]
    async def on_partitions_assigned(self, assigned: set[TopicPartition]) -> None:
        tell(assigned=sorted(each.partition for each in assigned))

    async def on_partitions_revoked(self, revoked: set[TopicPartition]) -> None:
        tell(revoked=sorted(each.partition for each in revoked))


async def main() -> None:
    consumer = AIOKafkaConsumer(
        bootstrap_servers=asked.bootstrap,
        group_id=asked.group,
        group_instance_id=asked.instance or None,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        session_timeout_ms=asked.session,
        heartbeat_interval_ms=300,
        partition_assignment_strategy=(assignors[asked.strategy],),
    )
    await consumer.start()
    consumer.subscribe([asked.topic], listener=Listener())
    running = Running()
    while running:
        pages = await consumer.getmany(timeout_ms=200, max_records=20)
        for place, records in pages.items():
            for record in records:
                tell(read=[place.partition, record.offset])
        if pages:
            try:
                await consumer.commit()
            except KafkaError as error:
                tell(refused=type(error).__name__)
            else:
                tell(committed={place.partition: records[-1].offset + 1 for place, records in pages.items()})
    await consumer.stop()
    tell(closed=True)


asyncio.run(main())
