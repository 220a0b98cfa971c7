"""Two worlds that a soak plays in: a broker over files, and two over one Redis; and the faults that happen there.

Every fault is healed before it returns, and none of them may lose what was acknowledged.
"""

import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

from broker_process import BrokerProcess
from faults.redis.proxy import RedisProxy
from pausable import PausableProcess
from redis_server import PROGRAMS, RedisServer, find_program, free_port

SETTINGS = ("broker.heartbeat.interval.ms=300", "broker.session.timeout.ms=3000", "group.initial.rebalance.delay.ms=0")
PAUSE = 4.0  # seconds: longer than a session of brokers


class World:
    """Brokers with a Kafka, a text and a legacy listener each.

    `faults`: what can be made to happen, by name. `restarts`: the same, where a broker's process ends.
    """

    def __init__(self, name: str, stores: Sequence[tuple[Path, str | None]]) -> None:
        """`stores`: of each broker its directory, and the URL of its store if that is another."""
        self.name = name
        self.texts = [free_port() for _ in stores]
        self.legacies = [free_port() for _ in stores]
        self.brokers: list[BrokerProcess] = []
        for (directory, store), text, legacy in zip(stores, self.texts, self.legacies, strict=True):
            doors = ("--listen", f"text://127.0.0.1:{text}", "--listen", f"legacy://127.0.0.1:{legacy}")
            self.brokers.append(BrokerProcess(directory, *SETTINGS, store=store, arguments=doors))
        self.faults: dict[str, Callable[[], None]] = {}
        self.restarts: dict[str, Callable[[], None]] = {}
        for number, broker in enumerate(self.brokers):
            self.restarts[f"kill -9 broker {number}"] = partial(restart, broker, signal.SIGKILL)
            self.restarts[f"stop broker {number}"] = partial(restart, broker, signal.SIGTERM)
            self.faults[f"pause broker {number}"] = partial(pause, broker)

    @property
    def names(self) -> list[str]:
        """Of the brokers."""
        return [f"{self.name} {number}" for number in range(len(self.brokers))]

    @property
    def bootstrap(self) -> str:
        return ",".join(broker.bootstrap for broker in self.brokers)

    @contextmanager
    def running(self) -> Iterator["World"]:
        """Until the block ends. Raises `AssertionError` if a broker does not stop well."""
        try:
            for broker in self.brokers:
                broker.start()
            yield self
            codes = [broker.stop() for broker in self.brokers]
            assert codes == [0] * len(codes), codes
            traces = [line for broker in self.brokers for line in broker.log if "Traceback" in line]
            assert not traces, f"{len(traces)} tracebacks, the first of them:\n{traces[0]}"
        finally:
            for broker in self.brokers:
                broker.kill()


def restart(broker: BrokerProcess, how: int) -> None:
    broker.stop(how)
    broker.start()


def kill(server: RedisServer) -> None:
    server.restart()


def pause(process: PausableProcess) -> None:
    process.pause()
    time.sleep(PAUSE)
    process.resume()


def use_up_memory(server: RedisServer) -> None:
    server.call("CONFIG", "SET", "maxmemory", 1)
    time.sleep(PAUSE)
    server.call("CONFIG", "SET", "maxmemory", 0)


@contextmanager
def open_worlds(place: Path) -> Iterator[list[World]]:
    """Both of them, in a directory of their own."""
    with ExitStack() as stack:
        files = World("files", [(place / "data", None)])
        server = stack.enter_context(RedisServer(find_program(PROGRAMS[1]), place / "redis", appendonly="yes"))
        proxy = stack.enter_context(RedisProxy(server.port))
        shared = World("redis", [(place / "unused", proxy.url)] * 2)
        shared.faults["kill -9 Redis"] = partial(kill, server)
        shared.faults["pause Redis"] = partial(pause, server)
        shared.faults["reset connections to Redis"] = proxy.reset_all
        shared.faults["maxmemory"] = partial(use_up_memory, server)
        yield [stack.enter_context(world.running()) for world in (files, shared)]
