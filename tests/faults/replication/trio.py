"""Three brokers that keep each other's copies, as processes: they are killed, paused and moved while clients write."""

import asyncio
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import ExitStack
from itertools import cycle
from pathlib import Path

from confluent_kafka.admin import AdminClient, PartitionMetadata

from broker_process import BrokerProcess
from faults.replication.links import Links
from korvet_fast.client.cluster import Cluster
from korvet_fast.client.copies import Lags, find_lags
from korvet_fast.endpoint import read_bootstrap
from redis_server import free_port

# Out of sync after four seconds of silence: longer than a busy machine lets a broker stand still, as what is told of
# brokers is looked at.
QUICK = ("replica.lag.timeout=4000", "broker.heartbeat.interval.ms=300", "broker.session.timeout.ms=4000")
PATIENCE = 240.0  # seconds


class Trio:
    """Brokers 1, 2 and 3. `with` starts them and ends them. `brokers` has them by id, `texts` their text listeners.

    `webs`: their http listeners.

    `links`: they reach each other through `links`, which can be cut. `peers`: the scheme of their listeners for that.
    """

    def __init__(
        self, place: Path, *settings: str, more: Sequence[str] = QUICK, links: bool = False, peers: str = "replica"
    ) -> None:
        self.away: BrokerProcess | None = None  # not to be asked
        self.place = place
        self.secret = place / "secret"
        self.secret.write_text("what only the three of them know\n")
        self._scheme = peers
        self.ports = {identity: free_port() for identity in (1, 2, 3)}
        self.texts = {identity: free_port() for identity in (1, 2, 3)}
        self.webs = {identity: free_port() for identity in (1, 2, 3)}
        self._stack = ExitStack()
        self.links = self._stack.enter_context(Links(self.ports)) if links else None
        self.brokers = {identity: self._make(place, identity, *more, *settings) for identity in (1, 2, 3)}

    def _make(self, place: Path, identity: int, *settings: str) -> BrokerProcess:
        listeners = (
            f"{self._scheme}://127.0.0.1:{self.ports[identity]}",
            f"text://127.0.0.1:{self.texts[identity]}",
            f"http://127.0.0.1:{self.webs[identity]}",
        )
        return BrokerProcess(
            place / f"broker-{identity}" / "data",
            f"node.id={identity}",
            f"broker.rack=rack-{identity}",
            f"replication.peers={self._list_peers(identity)}",
            f"replication.secret.file={self.secret}",
            *settings,
            arguments=[word for listener in listeners for word in ("--listen", listener)],
        )

    def _list_peers(self, identity: int) -> str:
        """The peers as this broker reaches them."""
        ways = (
            self.ports
            if self.links is None
            else {other: self.links.ports.get((identity, other), port) for other, port in self.ports.items()}
        )
        return ",".join(f"{other}@127.0.0.1:{port}" for other, port in ways.items())

    def __enter__(self) -> "Trio":
        self.start(1, 2, 3)
        return self

    def __exit__(self, *_: object) -> None:
        for broker in self.brokers.values():
            broker.kill()
        self._stack.close()

    def start(self, *identities: int) -> None:
        """Start these, side by side: one alone waits for another one."""
        failures: list[BaseException] = []

        def begin(broker: BrokerProcess) -> None:
            try:
                broker.start()
            except BaseException as error:  # noqa: BLE001  (of a thread: told below)
                failures.append(error)

        threads = [threading.Thread(target=begin, args=(self.brokers[identity],)) for identity in identities]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if failures:
            raise failures[0]

    @property
    def present(self) -> str:
        """Those that are not away."""
        return ",".join(broker.bootstrap for broker in self.brokers.values() if broker is not self.away)

    @property
    def bootstrap(self) -> str:
        """All three."""
        return ",".join(broker.bootstrap for broker in self.brokers.values())

    def create(self, topic: str, partitions: int, minimum: int = 2) -> None:
        """A topic with three copies, each of which has fetched: before that, only the leader may lead."""
        self.run("topic", "create", topic, "--partitions", str(partitions), "--replication-factor", "3", "--config",
                 f"min.insync.replicas={minimum}")  # fmt: skip
        self.wait_for(topic, lambda one: one.leader > 0 and len(one.isrs) == 3)
        deadline = time.monotonic() + PATIENCE
        while any((lags := self.lags(topic)).values()) or len(lags) < 2 * partitions:  # -1: not known yet
            assert time.monotonic() < deadline, f"{lags}{self.tell()}"
            time.sleep(0.05)

    def lags(self, topic: str) -> Lags:
        """By partition and follower, how many records the copy lacks."""

        async def find() -> Lags:
            async with Cluster(read_bootstrap(self.present)) as cluster:
                (found,) = (await cluster.metadata([topic]))["topics"]
                return await find_lags(cluster, topic, found["partitions"])

        return asyncio.run(find())

    def run(self, *arguments: str, within: float = PATIENCE) -> str:
        """A command of ours, again and again until it succeeds: brokers come and go meanwhile.

        A topic may have been made by an attempt that was not answered.
        """
        deadline = time.monotonic() + within
        tried = False
        while True:
            done = self.run_once(*arguments)
            made_before = tried and arguments[:2] == ("topic", "create") and "already exists" in done.stderr
            if done.returncode == 0 or made_before:
                return done.stdout
            tried = True
            assert time.monotonic() < deadline, done.stdout + done.stderr + self.tell()
            time.sleep(0.1)

    def run_once(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        command = [sys.executable, "-m", "korvet_fast", *arguments, "--bootstrap", self.present]
        return subprocess.run(command, capture_output=True, text=True)

    def appoint(self, topic: str, partition: int, broker: int) -> None:
        """Have a broker lead a partition, or `@registry`."""
        self.run("partition", "lead", topic, str(partition), "--broker", str(broker))

    def appoint_registry(self, brokers: Sequence[int]) -> int:
        """Have one of these lead `@registry`, and tell which: who lacks what another has refuses, for ever."""
        deadline = time.monotonic() + PATIENCE
        for broker in cycle(brokers):
            done = self.run_once("partition", "lead", "@registry", "0", "--broker", str(broker))
            if done.returncode == 0:
                return broker
            assert time.monotonic() < deadline, done.stdout + done.stderr + self.tell()
            time.sleep(0.1)
        raise AssertionError("no broker was named")

    def move_registry(self, broker: int) -> None:
        """Have this one lead `@registry`: a record that it lacks it copies from another one that leads before."""
        while self.appoint_registry([broker, *(other for other in self.brokers if other != broker)]) != broker:
            pass

    def describe(self, topic: str) -> dict[int, PartitionMetadata]:
        """The partitions of a topic as clients see them."""
        admin = AdminClient({"bootstrap.servers": self.present, "log_level": 0, "socket.timeout.ms": 5_000})
        return dict(admin.list_topics(topic, timeout=60).topics[topic].partitions)

    def find_leader(self, topic: str) -> int:
        """Who leads partition 0: each broker hears of that in its own time."""
        deadline = time.monotonic() + PATIENCE
        while (leader := self.describe(topic)[0].leader) == -1:
            assert time.monotonic() < deadline, f"nobody leads{self.tell()}"
            time.sleep(0.05)
        return leader

    def wait_for(self, topic: str, rule: "object", within: float = PATIENCE) -> None:
        """Until the rule holds for every partition."""
        deadline = time.monotonic() + within
        while not all(map(rule, (found := self.describe(topic)).values())):  # type: ignore[call-overload]
            seen = {one.id: (one.leader, one.isrs) for one in found.values()}
            assert time.monotonic() < deadline, f"{seen}{self.tell()}"
            time.sleep(0.05)

    def tell(self) -> str:
        """The last lines of all logs."""
        return "".join(
            f"\n-- broker {identity}\n" + "".join(broker.log[-20:]) for identity, broker in self.brokers.items()
        )
