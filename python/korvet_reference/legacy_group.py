"""A member of a consumer group of Kafka 0.7: `python -m korvet_reference.legacy_group HOSTS GROUP MEMBER TOPIC`.

Finds brokers, shares partitions and keeps positions in ZooKeeper, as `kafka/consumer/ZookeeperConsumerConnector.scala`
of 0.7.2 does, with one thread. Each message is a line of its output: `BROKER-PARTITION OFFSET PAYLOAD`, with the offset
behind the message. SIGTERM has it commit, and leave.
"""

import signal
import sys
import threading
from collections.abc import Mapping

from kazoo.client import KazooClient
from kazoo.exceptions import KazooException, NodeExistsError, NoNodeError
from kazoo.handlers.threading import KazooTimeoutError
from kazoo.protocol.states import KazooState

from korvet_reference.legacy_client import EARLIEST, FetchError, LegacyClient, read_messages

SESSION = 3.0  # seconds
PAUSE = 0.2  # seconds: between attempts to rebalance, and after a fetch that gave nothing
ROUND = 1 << 16  # bytes that are fetched of a partition at a time
AWAY = (OSError, KazooException, KazooTimeoutError)


def assign(partitions: list[str], threads: list[str]) -> dict[str, list[str]]:
    """Who gets what: both are sorted as strings, and each thread takes a run."""
    base, extra = divmod(len(partitions), len(threads))
    ordered, given = sorted(partitions), {}
    for place, thread in enumerate(sorted(threads)):
        start = base * place + min(place, extra)
        given[thread] = ordered[start : start + base + (place < extra)]
    return given


class Member:
    """One consumer with one thread. `positions`: of the partitions that are its own."""

    def __init__(self, hosts: str, group: str, member: str, topic: str) -> None:
        self.zookeeper = KazooClient(hosts, timeout=SESSION)
        self.topic, self.thread = topic, f"{member}-0"
        root = f"/consumers/{group}"
        self.ids, self.own = f"{root}/ids", f"{root}/ids/{member}"
        self.owners, self.offsets = f"{root}/owners/{topic}", f"{root}/offsets/{topic}"
        self.topics = f"/brokers/topics/{topic}"
        self.positions: dict[str, int] = {}
        self.clients: dict[str, LegacyClient] = {}
        self.changed, self.expired, self.ending = threading.Event(), threading.Event(), threading.Event()

    def run(self) -> None:
        """Consume until `ending`."""
        self.zookeeper.add_listener(self._follow)
        self.zookeeper.start(timeout=60)
        self.expired.set()
        while not self.ending.is_set():
            try:
                if self.expired.is_set():
                    self._register()
                if self.changed.is_set():
                    self._rebalance()
                if not self._fetch():
                    self.ending.wait(PAUSE)
            except AWAY:
                self._disconnect()
                self.changed.set()
                self.ending.wait(PAUSE)
        self._release()
        self.zookeeper.stop()

    def _follow(self, state: str) -> None:
        if state == KazooState.LOST:
            self.expired.set()

    def _wake(self, _: object) -> None:
        self.changed.set()

    def _register(self) -> None:
        self.expired.clear()
        self.positions = {}
        try:
            self.zookeeper.ensure_path(self.topics)
            value = f'{{ "{self.topic}": 1 }}'.encode()
            self.zookeeper.create(self.own, value, ephemeral=True, makepath=True)
        except NodeExistsError:
            self.zookeeper.delete(self.own)
            self.expired.set()
        except AWAY:
            self.expired.set()
            raise
        self.changed.set()

    def _rebalance(self) -> None:
        self.changed.clear()
        self._release()
        members = self.zookeeper.get_children(self.ids, watch=self._wake)
        brokers = self.zookeeper.get_children(self.topics, watch=self._wake)
        threads = [f"{member}-0" for member in members]
        partitions = []
        for broker in brokers:
            count = int(self.zookeeper.get(f"{self.topics}/{broker}", watch=self._wake)[0])
            partitions += [f"{broker}-{index}" for index in range(count)]
        mine = assign(partitions, threads).get(self.thread, []) if threads else []
        positions = {partition: self._find_position(partition) for partition in mine}
        made: list[str] = []
        try:
            for partition in mine:
                path = f"{self.owners}/{partition}"
                self.zookeeper.create(path, self.thread.encode(), ephemeral=True, makepath=True)
                made.append(path)
        except NodeExistsError:  # its owner has not let it go yet
            for path in made:
                self.zookeeper.delete(path)
            self.changed.set()
            self.ending.wait(PAUSE)
            return
        self.positions = positions

    def _find_position(self, partition: str) -> int:
        try:
            return int(self.zookeeper.get(f"{self.offsets}/{partition}")[0])
        except NoNodeError:
            return self._find_start(partition)

    def _find_start(self, partition: str) -> int:
        broker, index = partition.rsplit("-", 1)
        return self._connect(broker).offsets(self.topic, int(index), EARLIEST)[0]

    def _connect(self, broker: str) -> LegacyClient:
        if broker not in self.clients:
            _, host, port = self.zookeeper.get(f"/brokers/ids/{broker}")[0].decode().split(":")
            self.clients[broker] = LegacyClient(host, int(port))
        return self.clients[broker]

    def _disconnect(self) -> None:
        for client in self.clients.values():
            client.close()
        self.clients = {}

    def _fetch(self) -> bool:
        """One MULTIFETCH for each broker; whether any message came."""
        found = False
        for broker in {partition.rsplit("-", 1)[0] for partition in self.positions}:
            mine = {at: offset for at, offset in self.positions.items() if at.rsplit("-", 1)[0] == broker}
            asked = [(self.topic, int(at.rsplit("-", 1)[1]), offset, ROUND) for at, offset in mine.items()]
            moved = {}
            for (partition, offset), data in zip(mine.items(), self._connect(broker).multi_fetch(asked), strict=True):
                if isinstance(data, FetchError):
                    moved[partition] = self._find_start(partition)
                    continue
                for message in read_messages(data, offset):
                    sys.stdout.write(f"{partition} {message.following} {message.payload.decode()}\n")
                    moved[partition] = message.following
            sys.stdout.flush()
            self.positions |= moved
            self._commit(moved)
            found |= bool(moved)
        return found

    def _commit(self, positions: Mapping[str, int]) -> None:
        for partition, offset in positions.items():
            path, value = f"{self.offsets}/{partition}", str(offset).encode()
            self.zookeeper.ensure_path(path)
            self.zookeeper.set(path, value)

    def _release(self) -> None:
        """Commit, and let go of what is our own."""
        self._commit(self.positions)
        mine, self.positions = self.positions, {}
        for partition in mine:
            self.zookeeper.delete(f"{self.owners}/{partition}")


def main() -> None:
    """Consume until SIGTERM."""
    member = Member(*sys.argv[1:])
    signal.signal(signal.SIGTERM, lambda *_: member.ending.set())
    member.run()


if __name__ == "__main__":
    main()
