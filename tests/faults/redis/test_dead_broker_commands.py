"""Commands of administrators while one broker is dead, and the others have not noticed."""

import json
import subprocess
import sys
from collections.abc import Callable

from broker_process import BrokerProcess
from faults.redis.load import create_topic
from redis_server import RedisServer

Serve = Callable[..., BrokerProcess]
PATIENT = "broker.session.timeout.ms=600000"  # a dead broker is not noticed in this test
PARTITIONS = 4


def call(brokers: list[BrokerProcess], *arguments: str) -> str:
    """A command of ours; `brokers` are its bootstrap addresses, in this order."""
    bootstrap = ",".join(one.bootstrap for one in brokers)
    command = [sys.executable, "-m", "korvet_fast", *arguments, "--bootstrap", bootstrap]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_topics_are_described_and_created(serve: Serve, redis_server: RedisServer) -> None:
    first = serve(redis_server.url, PATIENT, "node.id=1")  # named as the controller
    second = serve(redis_server.url, PATIENT, "node.id=2")
    brokers = [first, second]
    create_topic(first.bootstrap, "load", PARTITIONS)
    while {row["leader"] for row in describe(brokers, "load")} != {1, 2}:
        pass
    first.kill()
    for order in (brokers, [second]):
        rows = describe(order, "load")
        assert len(rows) == PARTITIONS
        for row in rows:
            known = row["leader"] == 2
            assert row["missing"] == ([] if known else ["1 leads, and does not answer"])
            assert (row["first_offset"] is not None) == known
        assert {row["leader"] for row in rows} == {1, 2}
        assert "1 leads, and does not answer" in call(order, "topic", "describe", "load")
        name = f"made-by-{len(order)}"
        assert f"created topic {name}" in call(order, "topic", "create", name)
        assert name in call(order, "topic", "list")
    first.start()
    assert all(row["next_offset"] is not None for row in describe(brokers, "load"))


def describe(brokers: list[BrokerProcess], topic: str) -> list[dict[str, object]]:
    ((found),) = json.loads(call(brokers, "topic", "describe", topic, "--json"))
    partitions: list[dict[str, object]] = found["partitions"]
    return partitions
