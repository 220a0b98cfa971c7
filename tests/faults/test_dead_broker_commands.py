"""Commands of administrators while one broker is dead, or stands still, and the others have not noticed."""

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from broker_process import BrokerProcess
from faults.redis.load import create_topic
from faults.several import Several

PATIENT = "broker.session.timeout.ms=600000"  # a dead broker is not noticed in this test
PARTITIONS = 4


def call(brokers: list[BrokerProcess], *arguments: str) -> str:
    """A command of ours; `brokers` are its bootstrap addresses, in this order."""
    bootstrap = ",".join(one.bootstrap for one in brokers)
    command = [sys.executable, "-m", "korvet_fast", *arguments, "--bootstrap", bootstrap]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize(
    ("several", "end", "come_back"),
    [("entries", "kill", "start"), ("batches", "kill", "start"), ("workers", "pause", "resume")],
    indirect=["several"],
)
def test_topics_are_described_and_created(several: Several, end: str, come_back: str) -> None:
    """The death of a worker is noticed at once: it stands still instead."""
    brokers = first, second = several(2, PATIENT)  # the first is named as the controller
    first.kill()
    create_topic(second.bootstrap, "load", PARTITIONS)  # over workers, the second one has the registry from now on
    first.start()
    while {row["leader"] for row in describe(brokers, "load")} != {1, 2}:
        pass
    getattr(first, end)()
    for order in (brokers, [second]):
        name = f"made-by-{len(order)}"
        with ThreadPoolExecutor() as pool:  # side by side: each waits for who stands still
            described = pool.submit(call, order, "topic", "describe", "load")
            created = pool.submit(call, order, "topic", "create", name)
            rows = describe(order, "load")
        assert len(rows) == PARTITIONS
        for row in rows:
            known = row["leader"] == 2
            assert row["missing"] == ([] if known else ["1 leads, and does not answer"])
            assert (row["first_offset"] is not None) == known
        assert {row["leader"] for row in rows} == {1, 2}
        assert "1 leads, and does not answer" in described.result()
        assert f"created topic {name}" in created.result()
        assert name in call(order, "topic", "list")
    getattr(first, come_back)()
    assert all(row["next_offset"] is not None for row in describe(brokers, "load"))


def describe(brokers: list[BrokerProcess], topic: str) -> list[dict[str, object]]:
    ((found),) = json.loads(call(brokers, "topic", "describe", topic, "--json"))
    partitions: list[dict[str, object]] = found["partitions"]
    return partitions
