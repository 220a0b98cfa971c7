"""Brokers inside a program: in its loop, on a thread, over files and over Redis; nothing of them is left."""

import asyncio
import gc
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from confluent_kafka import Consumer, Producer

from korvet_fast.errors import SettingError, StoreError
from korvet_fast.testing import broker_in_thread, running_broker
from redis_server import RedisServer

LIMIT = 120.0  # seconds


async def send_and_read(address: str, value: bytes) -> list[bytes]:
    """Send a record with aiokafka, and read all of the topic in a group."""
    async with asyncio.timeout(LIMIT), AIOKafkaProducer(bootstrap_servers=address) as producer:
        await producer.send_and_wait("orders", value)
    group = {"group_id": "billing", "auto_offset_reset": "earliest"}
    async with asyncio.timeout(LIMIT), AIOKafkaConsumer("orders", bootstrap_servers=address, **group) as consumer:
        (records,) = (await consumer.getmany(timeout_ms=int(LIMIT * 1000))).values()
        return [record.value for record in records]


def find_threads(*names: str) -> list[str]:
    """The names of those that begin so."""
    return [thread.name for thread in threading.enumerate() if thread.name.startswith(names)]


async def test_a_broker_in_this_loop_serves_and_goes() -> None:
    tasks = asyncio.all_tasks()
    gc.collect()
    descriptors = len(list(Path("/proc/self/fd").iterdir()))
    for value in (b"first", b"second"):  # the second broker begins empty
        async with running_broker() as address:
            assert await send_and_read(address, value) == [value]
    assert asyncio.all_tasks() == tasks
    async with asyncio.timeout(LIMIT):
        while find_threads("check", "korvet"):
            await asyncio.sleep(0.01)
        while len(list(Path("/proc/self/fd").iterdir())) > descriptors:
            gc.collect()  # a broker's parts know each other
            await asyncio.sleep(0.01)


async def test_signals_stay_the_programs() -> None:
    handlers = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    async with running_broker():
        assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == handlers


def test_a_broker_on_a_thread_serves_clients_that_block() -> None:
    threads = set(threading.enumerate())
    with broker_in_thread() as address:
        producer = Producer({"bootstrap.servers": address})
        producer.produce("orders", b"one")
        assert producer.flush(LIMIT) == 0
        consumer = Consumer({"bootstrap.servers": address, "group.id": "billing", "auto.offset.reset": "earliest"})
        consumer.subscribe(["orders"])
        message = consumer.poll(LIMIT)
        consumer.close()
        assert message is not None
        assert message.value() == b"one"
    assert set(threading.enumerate()) <= threads


def test_a_broker_may_be_started_on_any_thread() -> None:
    """Not only on the main one, where alone asyncio may catch signals."""
    addresses: list[str] = []

    def start() -> None:
        with broker_in_thread() as address:
            addresses.append(address)
        asyncio.run(start_here())

    async def start_here() -> None:
        async with running_broker() as address:
            addresses.append(address)

    thread = threading.Thread(target=start)
    thread.start()
    thread.join(LIMIT)
    assert len(addresses) == 2


async def test_files_named_are_kept(tmp_path: Path) -> None:
    for _ in range(2):
        async with running_broker(f"file:{tmp_path}/data", {"num.partitions": 3}) as address:
            found = await send_and_read(address, b"kept")
    assert len(found) == 1  # of the group's positions: the first was committed
    assert len(list((tmp_path / "data").rglob("*.log"))) > 0


async def test_redis_has_nothing_afterwards(redis_server: RedisServer) -> None:
    redis_server.call("SET", "theirs", "1")
    async with running_broker(redis_server.url) as one, running_broker(redis_server.url) as other:
        assert await send_and_read(one, b"one") == [b"one"]
        assert await send_and_read(other, b"other") == [b"other"]
        assert redis_server.call("DBSIZE") > 3
    assert redis_server.call("KEYS", "*") == [b"theirs"]


async def test_a_namespace_named_is_kept(redis_server: RedisServer) -> None:
    async with running_broker(f"{redis_server.url}?namespace=shop") as address:
        await send_and_read(address, b"one")
    assert b"shop:orders:0" in redis_server.call("KEYS", "*")


@pytest.mark.parametrize(
    ("store", "settings", "error", "said"),
    [
        (None, {"num.partitionz": 3}, SettingError, "did you mean 'num.partitions'?"),
        (None, {"num.partitions": "x"}, SettingError, "num.partitions is 'x', but must be a whole number"),
        ("data", {}, SettingError, "'data' is no store: write file:DIRECTORY or redis://HOST:PORT"),
        ("file:", {}, SettingError, "'file:' is no store"),
        ("radis://localhost", {}, SettingError, "redis"),
        ("redis://127.0.0.1:1", {}, StoreError, "cannot connect to Redis at 127.0.0.1:1: Connection refused"),
    ],
)
def test_what_is_wrong_is_said_where_the_broker_is_started(
    store: str | None, settings: dict[str, object], error: type[Exception], said: str
) -> None:
    with pytest.raises(error) as raised, broker_in_thread(store, settings):
        pass
    assert said in str(raised.value)
    assert "--set" not in str(raised.value), "nobody has typed that"


async def test_the_programs_own_error_comes_through() -> None:
    with pytest.raises(ZeroDivisionError):
        async with running_broker():
            raise ZeroDivisionError
    with pytest.raises(ZeroDivisionError), broker_in_thread():
        raise ZeroDivisionError


def test_the_plugin_imports_no_broker() -> None:
    """pytest loads it in every session of everybody who has this package."""
    program = "import sys, korvet_fast.testing.plugin\nprint([n for n in sys.modules if n.startswith('korvet_fast')])"
    command = [sys.executable, "-c", program]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert eval(said) == ["korvet_fast", "korvet_fast.testing", "korvet_fast.testing.plugin"]
