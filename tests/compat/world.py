"""Where the scenarios play: a broker over one of the stores, and the clients that are open at it."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

from broker_process import BrokerProcess
from compat.client import Client, open_client
from redis_server import PROGRAMS, RedisServer, find_program

STORES = {"embedded": "", "entries": PROGRAMS[0], "batches": PROGRAMS[1]}  # a layout on Redis: on which server
SETTINGS = (
    *("num.partitions=4", "group.initial.rebalance.delay.ms=100", "group.min.session.timeout.ms=1000"),
    *("group.consumer.heartbeat.interval.ms=300", "group.consumer.session.timeout.ms=6000"),
)


class World:
    """A running broker. Clients are opened when they are first asked for, and stay until the world ends."""

    def __init__(self, store: str, redis: RedisServer | None, broker: BrokerProcess, ending: ExitStack) -> None:
        self.store = store
        self.redis = redis
        self.broker = broker
        self._ending = ending
        self._clients: dict[tuple[str, str], Client] = {}

    def client(self, name: str, bootstrap: str = "") -> Client:
        """The client of this name at this world's broker, or at another address."""
        key = name, bootstrap or self.broker.bootstrap
        if key not in self._clients:
            self._clients[key] = self._ending.enter_context(open_client(*key))
        return self._clients[key]

    def batches_at_rest(self, topic: str) -> bytes:
        """Partition 0 as it is kept, where it is kept in batches."""
        if self.redis is None:
            return (Path(self.broker.store.removeprefix("file:")) / f"{topic}-0" / f"{0:020}.log").read_bytes()
        return b"".join(fields[1] for _, fields in self.redis.call("XRANGE", f"korvet:{topic}:0", "-", "+"))


@contextmanager
def open_world(store: str, directory: Path, *arguments: str) -> Iterator[World]:
    """A broker over an empty store of this kind, in this directory; `arguments` for `serve`."""
    with ExitStack() as ending:
        redis = None
        settings = SETTINGS
        if store != "embedded":
            server = RedisServer(find_program(STORES[store]), directory / "redis", appendonly="yes")
            redis = ending.enter_context(server)
            settings = (*SETTINGS, f"storage.layout={store}")
        broker = BrokerProcess(directory / "data", *settings, store=redis and redis.url, arguments=arguments)
        ending.enter_context(broker)
        yield World(store, redis, broker, ending)


class Stage(NamedTuple):
    """The parts that a scenario gets: the name of the client it is about, a topic of its own, and where it plays.

    `other` is a client of another make, for what has to be there before and looked at afterwards. `fresh` opens a world
    of the scenario's own, whose broker it may kill.
    """

    name: str
    topic: str
    world: World
    fresh: Callable[..., World]

    @property
    def client(self) -> Client:
        return self.world.client(self.name)

    @property
    def other(self) -> Client:
        return self.world.client(self.other_name)

    @property
    def other_name(self) -> str:
        return "kafka_python" if self.name == "confluent" else "confluent"
