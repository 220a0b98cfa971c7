"""Several operators name different leaders of the metadata log at once, while topics are created."""

import asyncio
import json
import re
import threading
import time
from pathlib import Path

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, NewTopic

from faults.replication.metrics import LEADER, scrape, until
from faults.replication.trio import PATIENCE, Trio
from korvet_fast.client.leaders import appoint_registry_leader
from korvet_fast.client.protocol.errors import ClientError
from korvet_fast.core.replication.secret import read_secret
from korvet_fast.endpoint import Address

SECONDS = 10
PAUSE = 1.0  # seconds that a leader may lead
LED = re.compile(r"this broker leads @registry, the metadata log, under epoch (\d+)")


class Operator(threading.Thread):
    """Has its broker lead the metadata log again and again, at least once. `led`: how often it said that it leads."""

    def __init__(self, trio: Trio, broker: int, until: float) -> None:
        super().__init__()
        self.led = 0
        self._secret = read_secret(str(trio.secret))
        self._address, self._broker, self._until = Address("127.0.0.1", trio.ports[broker]), broker, until

    def run(self) -> None:
        while time.monotonic() < self._until or (not self.led and time.monotonic() < self._until + PATIENCE):
            try:
                asyncio.run(appoint_registry_leader([self._address], self._secret, self._broker))
            except ClientError:  # another operator was faster, or the broker is still copying
                continue
            self.led += 1
            time.sleep(PAUSE)


def test_topics_that_were_acknowledged_stay_whoever_was_named(tmp_path: Path) -> None:
    """Each epoch has one leader, all brokers know the same one in the end, and each has all topics."""
    with Trio(tmp_path) as trio:
        operators = [Operator(trio, broker, time.monotonic() + SECONDS) for broker in (1, 2)]
        for operator in operators:
            operator.start()
        admin = AdminClient({"bootstrap.servers": trio.bootstrap, "log_level": 0})
        acknowledged, tried = set[str](), 0
        while any(operator.is_alive() for operator in operators):
            name, tried = f"t{tried}", tried + 1
            try:
                admin.create_topics([NewTopic(name, 1, 3)], operation_timeout=5)[name].result(60)
            except KafkaException:  # nobody says whether the topic is there
                continue
            acknowledged.add(name)
        for operator in operators:
            operator.join()
        assert acknowledged
        assert all(operator.led for operator in operators)
        leader = trio.appoint_registry([1, 2, 3])
        trio.run("topic", "create", "last", "--partitions", "1", "--replication-factor", "3")
        until(trio, lambda: {scrape(trio, broker)[LEADER] for broker in trio.brokers} == {leader})
        for broker in trio.brokers.values():
            one = AdminClient({"bootstrap.servers": broker.bootstrap})
            until(trio, lambda one=one: acknowledged | {"last"} <= one.list_topics(timeout=60).topics.keys())
        messages = [json.loads(line)["message"] for broker in trio.brokers.values() for line in broker.log]
        epochs = [found[1] for message in messages if (found := LED.match(message))]
        assert len(epochs) > 2
        assert len(epochs) == len(set(epochs)), "two brokers led under one epoch"
