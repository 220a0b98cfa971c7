"""The parts of a broker's life that a process test does not reach."""

import asyncio
import logging
import signal
from collections.abc import Sequence
from pathlib import Path

import pytest

from korvet_fast.config import read_settings
from korvet_fast.core.broker import Broker
from korvet_fast.core.fair_executor import FairExecutor
from korvet_fast.core.readiness import find_obstacle
from korvet_fast.endpoint import Endpoint
from korvet_fast.net import serve
from korvet_fast.net.limits import (
    FILES_BESIDE,
    OPERATORS,
    ServerLimits,
    count_needed_files,
    leave_room,
    limit_operators,
    read_limits,
)
from korvet_fast.net.listeners import Listener
from korvet_fast.net.serve import _report
from korvet_fast.store.embedded.store import EmbeddedStore
from korvet_fast.store.workers.keys import REGISTRY
from korvet_fast.store.workers.locks import ByteLocks
from korvet_fast.store.workers.store import WorkerStore
from korvet_fast.wire.dialects import DIALECTS, OF_CLIENTS
from toy_dialect import ToyDialect, frame


def test_what_nobody_caught_is_logged_with_its_traceback(caplog: pytest.LogCaptureFixture) -> None:
    try:
        raise ZeroDivisionError("nobody caught this")
    except ZeroDivisionError as error:
        _report(None, {"message": "Exception in callback", "exception": error})  # type: ignore[arg-type]
    assert [record.levelno for record in caplog.records] == [logging.ERROR]
    assert "Exception in callback" in caplog.text
    assert "Traceback" in caplog.text


def test_limits_come_from_the_settings() -> None:
    given = ["max.connections=7", "max.connections.per.ip=6", "max.connection.creation.rate=5"]
    server_limits, limits = read_limits(
        read_settings([*given, "queued.max.request.bytes=4000", "connections.max.idle.ms=3000"])
    )
    assert server_limits == ServerLimits(7, 6, 5, 4000)
    assert limits.idle == 3.0


def test_connections_leave_descriptors_to_the_store() -> None:
    assert leave_room(ServerLimits(), 1 << 20) == ServerLimits()
    assert leave_room(ServerLimits(), 13_482) == ServerLimits()
    assert leave_room(ServerLimits(), 13_481).connections == 9_999
    assert leave_room(ServerLimits(), 10).connections == 1


def test_connections_of_operators_leave_descriptors_to_the_store_and_to_clients() -> None:
    assert limit_operators(1 << 20) == OPERATORS
    assert limit_operators(10).connections == 1
    for descriptors in range(66, 1000):
        clients = leave_room(ServerLimits(), descriptors).connections
        operators = limit_operators(descriptors)
        assert clients + operators.connections <= max(2, descriptors * 3 // 4 + 1 - FILES_BESIDE)
        assert bool(operators.why_fewer) == (operators.connections < OPERATORS.connections)


@pytest.mark.parametrize("connections", [1, 2, 3, 4, 5, 1000, 10_000])
def test_what_a_person_is_told_to_raise_the_limit_to_is_enough(connections: int) -> None:
    wanted = ServerLimits(connections)
    needed = count_needed_files(connections)
    assert leave_room(wanted, needed) == wanted
    too_few = leave_room(wanted, 60)
    assert too_few == wanted or too_few.why_fewer.endswith(f"(`ulimit -n`, LimitNOFILE=) to {needed}")


@pytest.mark.usefixtures("unfrozen")
def test_each_listener_speaks_the_dialect_of_its_scheme(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    numbers: list[int] = []

    def toy(_: Broker, number: int, __: FairExecutor) -> ToyDialect:
        numbers.append(number)
        return ToyDialect()

    monkeypatch.setattr(serve, "DIALECTS", {**DIALECTS, "toy": toy})
    monkeypatch.setattr(serve, "OF_CLIENTS", {*OF_CLIENTS, "toy"})
    listeners = [Listener(Endpoint(scheme, "127.0.0.1", 0)) for scheme in ("toy", "kafka", "toy")]

    async def talk(endpoints: list[Endpoint]) -> None:
        assert [endpoint.scheme for endpoint in endpoints] == ["toy", "kafka", "toy"]
        for endpoint in endpoints:
            reader, writer = await asyncio.open_connection(*endpoint.address)
            version = bytes([0, 18, 0, 0]) + b"next" + bytes(2)
            writer.write(frame(b"echo next") if endpoint.scheme == "toy" else frame(version))
            size = int.from_bytes(await reader.readexactly(4), "big")
            reply = await reader.readexactly(size)
            assert reply == b"echo next" if endpoint.scheme == "toy" else reply.startswith(b"next\0\0")
            writer.close()

    async def main() -> None:
        talks: list[asyncio.Task[None]] = []

        def ready(endpoints: list[Endpoint]) -> None:
            talks.append(asyncio.ensure_future(talk(endpoints)))
            talks[0].add_done_callback(lambda _: signal.raise_signal(signal.SIGTERM))

        async with asyncio.timeout(120):
            await serve.serve(Broker(EmbeddedStore(tmp_path), read_settings([])), listeners, ready)
        await talks[0]

    asyncio.run(main())
    assert numbers == [0, 2]


@pytest.mark.usefixtures("unfrozen")
def test_a_broker_is_starting_until_it_listens(tmp_path: Path) -> None:
    """While it tells ZooKeeper where it is, which may take long, no client is let in yet."""
    broker, said = Broker(EmbeddedStore(tmp_path), read_settings([])), list[str]()
    stop = asyncio.Event()

    class Registry:
        async def open(self, _: Sequence[Endpoint]) -> None:
            said.append(find_obstacle(broker))

        async def close(self) -> None:
            said.append(find_obstacle(broker))

    def ready(_: list[Endpoint]) -> None:
        said.append(find_obstacle(broker))
        stop.set()

    listeners = [Listener(Endpoint("kafka", "127.0.0.1", 0))]
    asyncio.run(serve.serve_until(stop, broker, listeners, ready, Registry()))
    assert said == ["the broker is starting", "", "the broker is stopping"]


@pytest.mark.usefixtures("unfrozen")
def test_a_worker_that_waits_for_the_registry_ends_when_it_is_told_to(tmp_path: Path) -> None:
    """Another worker has the registry, and stands still: the wait would end with an error, after 20 s."""
    locks = ByteLocks(tmp_path / "locks")
    assert locks.take(REGISTRY)
    listeners = [Listener(Endpoint("kafka", "127.0.0.1", 0))]

    async def main() -> None:
        stop = asyncio.Event()
        broker = Broker(WorkerStore(tmp_path, 1, tmp_path / "locks"), read_settings([]))
        serving = asyncio.create_task(serve.serve(broker, listeners, lambda _: None, stop=stop))
        while locks.take(1):  # until it has begun to open
            locks.release(1)
            await asyncio.sleep(0.01)
        stop.set()
        await serving

    asyncio.run(main())
    locks.close()
