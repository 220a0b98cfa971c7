"""A broker that is not in sync leads if somebody insists: it is said before what that costs."""

from pathlib import Path

from confluent_kafka import Producer

from faults.redis.load import read_log
from faults.replication.trio import Trio


def produce(trio: Trio, count: int, begin: int = 0) -> None:
    producer = Producer({"bootstrap.servers": trio.present, "acks": "all", "log_level": 0})
    for number in range(begin, begin + count):
        producer.produce("orders", f"order {number}")
    assert producer.flush(200) == 0


def test_what_is_lost_is_told_and_then_lost(tmp_path: Path) -> None:
    with Trio(tmp_path) as trio:
        trio.create("orders", 1)
        produce(trio, 10)
        leader = trio.find_leader("orders")
        late, heir = (broker for broker in (1, 2, 3) if broker != leader)
        trio.brokers[late].kill()
        trio.wait_for("orders", lambda one: len(one.isrs) == 2)
        produce(trio, 30, begin=10)
        trio.appoint("@registry", 0, heir)
        trio.brokers[leader].kill()
        trio.away = trio.brokers[leader]
        trio.start(late)  # what it writes into the metadata log waits until it has copied that itself
        trio.wait_for("orders", lambda one: one.leader == -1)
        unclean = ("partition", "lead", "orders", "0", "--broker", str(late), "--unclean")
        refused = trio.run_once(*unclean[:-1])
        assert refused.returncode == 1
        assert "is not in sync, and would lose records" in refused.stderr
        warned = trio.run_once(*unclean)
        assert warned.returncode == 2
        told = f"broker {late} lacks 30 records of orders 0, and what only broker {leader} has, which is away"
        assert told in " ".join(warned.stderr.split())
        needless = trio.run_once("partition", "lead", "orders", "0", "--broker", str(heir), "--unclean")
        assert f"broker {heir} is in sync, so nothing is lost" in needless.stderr
        trio.run(*unclean, "--yes")
        assert trio.find_leader("orders") == late
        trio.start(leader)
        trio.wait_for("orders", lambda one: len(one.isrs) == 3)
        produce(trio, 5, begin=100)
        expected = [*range(10), *range(100, 105)]
        found = read_log(trio.brokers[leader].port, "orders")
        assert found == {0: [(offset, b"order %d" % number) for offset, number in enumerate(expected)]}
