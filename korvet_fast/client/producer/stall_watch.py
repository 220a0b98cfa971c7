"""The watch for messages that make no progress: at a partition, or before they have got to one."""

from collections.abc import Mapping

from korvet_fast.client.producer.config import ProducerConfig
from korvet_fast.client.producer.message_ledger import MessageLedger
from korvet_fast.client.producer.partition_producer import PartitionProducer
from korvet_fast.client.producer.topic_producer import TopicProducer
from korvet_fast.client.protocol.errors import ClientError
from korvet_fast.rate_limited_log import SEVERAL

_CHECKS = 10  # in `stall.ms`, while messages wait that are at no partition


class StallWatch:
    """Has a sentence for each partition or topic that came to stand still, until the driver takes them."""

    def __init__(self, config: ProducerConfig, ledger: MessageLedger, topics: Mapping[str, TopicProducer]) -> None:
        self._reports: list[str] = []
        self._config = config
        self._ledger = ledger
        self._topics = topics
        self._reported: set[str] = set()
        self._check_at = 0.0

    def watch(self, partition: PartitionProducer, now: float) -> float:
        """Report a partition that holds messages and makes no progress, once. Returns when it is to be reported."""
        until = partition.progress + self._config.stall
        if now < until:
            partition.stalled = False
        elif not partition.stalled:
            partition.stalled = True
            waiting = partition.queue.messages + sum(batch.count for batch in partition.batches)
            self._reports.append(
                f"{partition} has made no progress for {self._config.stall:g} s (stall.ms); messages waiting: "
                f"{waiting:,}; check {_leader_of(partition)}{_because(partition.last_error)}"
            )
        return until

    def check_topics(self, now: float) -> None:
        """Report topics whose messages wait for so long without a partition, or without memory, once."""
        if now < self._check_at:
            return
        self._check_at = now + self._config.stall / _CHECKS
        late = self._late_topics(now)
        self._reports.extend(sentence for name, sentence in late.items() if name not in self._reported)
        self._reported = set(late)

    def take_reports(self) -> list[str]:
        """The sentences since the last call: ten at most, and one for those above."""
        found, self._reports = self._reports, []
        more = len(found) - SEVERAL
        return [*found[:SEVERAL], f"{more:,} more partitions have made no progress"] if more > 0 else found

    def next_time(self) -> float | None:
        """The time of the next `check_topics`."""
        waits = self._ledger.waiting or any(topic.pending for topic in self._topics.values())
        return self._check_at if waits else None

    def stalled(self, now: float) -> tuple[str, ...]:
        """What stands still: partitions, and topics whose messages have got to none."""
        partitions = [each for topic in self._topics.values() for each in topic.partitions.values()]
        found = [str(each) for each in partitions if each.stalled and not each.idle]
        return (*found, *(f"topic {name!r}" for name in self._late_topics(now)))

    def _late_topics(self, now: float) -> dict[str, str]:
        """Topics by name, with a sentence for each."""
        before = now - self._config.stall
        late = {}
        for topic in self._topics.values():
            deadline = topic.first_deadline()
            if deadline is not None and deadline - self._config.delivery_timeout <= before:
                late[topic.name] = (
                    f"topic {topic.name!r} has had messages for {self._config.stall:g} s (stall.ms) whose partition is "
                    f"not known; check the brokers{_because(topic.last_error)}"
                )
        memory = self._ledger.memory
        for records, since in self._ledger.waiting.items():
            if since > before:  # nor has any of those that came later
                break
            late[records.topic] = (
                f"topic {records.topic!r} has had messages that wait for memory for {self._config.stall:g} s "
                f"(stall.ms): {memory.used:,} of buffer.memory={memory.total:,} are held; "
                "await deliveries, take the results of `input`, or raise it"
            )
        return late


def _leader_of(partition: PartitionProducer) -> str:
    return f"its leader {partition.broker}" if partition.broker is not None else "the cluster: it has no known leader"


def _because(error: ClientError | None) -> str:
    return f"; the last error was: {error}" if error is not None else ""
