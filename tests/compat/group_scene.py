"""Members of a group as processes, which can leave and be killed, and what all of them together have read."""

import json
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from confluent_kafka import ConsumerGroupTopicPartitions, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from broker_process import BrokerProcess
from compat.drivers import Unsupported, start

PARTITIONS = 6
PATIENCE = 240.0  # seconds: a busy machine may take long
UNSUPPORTED = 3  # the exit code of a member whose client cannot do what it was told


class MemberProcess:
    """One member: what it said so far, and what it owns by its own words."""

    def __init__(self, client: str, **options: Any) -> None:
        self.client = client
        self.said: list[dict[str, Any]] = []
        self.times: list[float] = []  # when it said so, monotonic, by its own words
        self.errors: list[str] = []
        self.ended_at = float("inf")  # by the test
        self.process = start(client, "member", json.dumps(options))
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        assert self.process.stderr is not None
        self.process.stdin.close()
        listening = [
            threading.Thread(target=self._listen, args=(self.process.stdout,), daemon=True),
            threading.Thread(target=self.errors.extend, args=(self.process.stderr,), daemon=True),
        ]
        for thread in listening:
            thread.start()
        self._listening = listening

    def _listen(self, lines: Iterator[str]) -> None:
        for line in lines:
            said = json.loads(line)
            self.times.append(said.pop("at"))
            self.said.append(said)

    @property
    def ended(self) -> bool:
        """Whether the member has gone because the test ended it."""
        return self.ended_at < float("inf")

    @property
    def owned(self) -> set[int]:
        owned: set[int] = set()
        for line in list(self.said):
            owned |= set(line.get("assigned", ()))
            owned -= set(line.get("revoked", ()))
        return owned

    @property
    def read(self) -> list[tuple[int, int]]:
        return [(line["read"][0], line["read"][1]) for line in list(self.said) if "read" in line]

    @property
    def committed(self) -> dict[int, int]:
        """The largest offset committed of each partition."""
        largest: dict[int, int] = {}
        for line in list(self.said):
            for partition, offset in line.get("committed", {}).items():
                largest[int(partition)] = max(offset, largest.get(int(partition), -1))
        return largest

    @property
    def changes(self) -> int:
        """How often it was given partitions, or they were taken away."""
        return sum("assigned" in line or "revoked" in line for line in list(self.said))

    def leave(self) -> None:
        self.ended_at = time.monotonic()
        self.process.send_signal(signal.SIGTERM)
        self._end()
        assert self.said[-1] == {"closed": True}, self.errors

    def check(self) -> None:
        """Raises Unsupported if it ended because its client cannot do what it was told; nothing else may end it."""
        code = self.process.poll()
        if code == UNSUPPORTED:
            raise Unsupported(f"{self.client}: {self.errors}")
        assert code is None or self.ended, f"a member in {self.client} ended with {code}: {self.errors}"

    def kill(self) -> None:
        self.ended_at = time.monotonic()
        self.process.kill()
        self._end()

    def _end(self) -> None:
        self.process.wait(PATIENCE)
        for thread in self._listening:
            thread.join(PATIENCE)
        for stream in (self.process.stdout, self.process.stderr):
            assert stream is not None
            stream.close()


class Scene:
    """A topic of `PARTITIONS` partitions, what was sent to it, and the members of one group that reads it.

    `settings`: of the producer.
    """

    def __init__(self, broker: BrokerProcess, topic: str, **settings: Any) -> None:
        self.broker = broker
        self.bootstrap = broker.bootstrap  # what members and the producer are told from now on
        self.topic = topic
        self.group = f"group-of-{topic}"
        self.members: list[MemberProcess] = []
        self.sent: set[tuple[int, int]] = set()
        # When the group's committed offsets were asked for and told (monotonic), and they: by partition.
        self.positions: list[tuple[float, float, dict[int, int]]] = []
        admin = AdminClient({"bootstrap.servers": broker.bootstrap})
        for done in admin.create_topics([NewTopic(topic, PARTITIONS)]).values():
            done.result(PATIENCE)
        self._settings = settings
        self._producer: Producer | None = None

    def member(self, client: str, **options: Any) -> MemberProcess:
        wanted = {"bootstrap": self.bootstrap, "topic": self.topic, "group": self.group}
        self.members.append(MemberProcess(client, **wanted | options))
        return self.members[-1]

    def gather(self, *clients: str, **options: Any) -> list[MemberProcess]:
        """Members, one in each of these clients; the first has read and committed before the others come.

        Where nothing is committed a client asks where a partition begins. librdkafka (2.16.1) asks again, and reads
        all of it again, if a rebalance overtook its first question and the answer to that comes late.
        """
        first, *others = clients
        members = [self.member(first, **options)]
        self.send()
        self.wait_read()
        members += [self.member(client, **options) for client in others]
        return members

    def send(self, count: int = 60) -> None:
        if self._producer is None:
            settings = {"bootstrap.servers": self.bootstrap, "reconnect.backoff.max.ms": 200}
            self._producer = Producer(settings | {"topic.metadata.refresh.interval.ms": 1000} | self._settings)
        for number in range(count):
            self._producer.produce(self.topic, b"%d" % number, partition=number % PARTITIONS, on_delivery=self._note)
        assert self._producer.flush(PATIENCE) == 0

    def close(self) -> None:
        """Let the producer go: its reports point back here, so it would stay, and look for its broker."""
        self._producer = None

    def _note(self, error: object, message: Any) -> None:
        assert error is None, error
        self.sent.add((message.partition(), message.offset()))

    def wait(self, true: Callable[[], bool]) -> None:
        """Until this holds."""
        until = time.monotonic() + PATIENCE
        while not true():
            for one in self.members:
                one.check()
            assert time.monotonic() < until, self.explain()
            time.sleep(0.02)

    def explain(self) -> str:
        """Everything that was said, for a test that fails."""
        lines = [
            f"{one.client}: {[line for line in one.said if 'read' not in line]} {one.errors}" for one in self.members
        ]
        unread = sorted(self.sent - set(self.read))
        lines.append(f"of {len(self.sent)} records sent {len(unread)} are unread: {unread[:20]}")
        return "\n".join([*lines, *self.broker.log[-20:]])

    def wait_shared(self, *members: MemberProcess) -> None:
        """Until these own all partitions, about as many each, and no two the same."""

        def shared() -> bool:
            owned = [one.owned for one in members]
            even = {len(each) for each in owned} == {PARTITIONS // len(members)}
            return even and set().union(*owned) == set(range(PARTITIONS))

        self.wait(shared)

    def wait_read(self) -> None:
        """Until all that was sent has been read by somebody, and committed."""
        self.wait(lambda: set(self.read) >= self.sent)
        ends = {partition: 1 + max(o for p, o in self.sent if p == partition) for partition, _ in self.sent}
        self.wait(lambda: all(self.committed.get(partition) == end for partition, end in ends.items()))
        assert set(self.read) == self.sent
        self._note_positions()

    def _note_positions(self) -> None:
        admin, begun = AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 0}), time.monotonic()
        asked = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(self.group)], request_timeout=PATIENCE)
        found = asked[self.group].result(PATIENCE)
        told = {each.partition: each.offset for each in found.topic_partitions}
        nothing = {partition: -1 for partition, _ in self.sent}
        self.positions.append((begun, time.monotonic(), nothing | told))

    @property
    def read(self) -> list[tuple[int, int]]:
        return [each for one in self.members for each in one.read]

    @property
    def committed(self) -> dict[int, int]:
        largest: dict[int, int] = {}
        for one in self.members:
            for partition, offset in one.committed.items():
                largest[partition] = max(offset, largest.get(partition, -1))
        return largest

    @property
    def unexplained(self) -> int:
        """How many times a record was read again although no commit of it had been refused."""
        explained: set[tuple[int, int]] = set()
        for one in self.members:
            pending: set[tuple[int, int]] = set()  # read, and not committed
            for line in list(one.said):
                if "read" in line:
                    partition, offset = line["read"]
                    pending.add((partition, offset))
                elif "refused" in line:
                    explained |= pending
                elif "committed" in line:
                    done = {int(partition): offset for partition, offset in line["committed"].items()}
                    pending = {each for each in pending if each[1] >= done.get(each[0], 0)}
        return sum(count - 1 for record, count in Counter(self.read).items() if record not in explained)

    @property
    def doubles(self) -> int:
        """How many records were read more than once."""
        return len(self.read) - len(set(self.read))


@contextmanager
def play(broker: BrokerProcess, topic: str, **settings: Any) -> Iterator[Scene]:
    """A scene; members that are still there are killed in the end."""
    scene = Scene(broker, topic, **settings)
    try:
        yield scene
    finally:
        for one in scene.members:
            if not one.ended:
                one.kill()
        scene.close()
