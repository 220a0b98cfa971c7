"""An older and a newer broker over one Redis (reliability F39): those that run share it.

An older one does not start where a newer one was, and leaves what that one wrote alone.
"""

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from broker_process import BrokerProcess
from faults.redis.conftest import every_pair
from faults.redis.load import Load, create_topic, read_log
from faults.redis.test_brokers import PARTITIONS, QUICK, bootstrap, wait_for_leaders
from kafka_server import make_batch, run
from korvet_fast.store.redis.schema import KEY, SCHEMA
from raw_connection import connect
from redis_server import RedisServer

Serve = Callable[..., BrokerProcess]
StartRedis = Callable[..., RedisServer]
HASH = "korvet:@registry:schema"
NEWER = SCHEMA + 1
PACKAGE = Path(__file__).parents[3] / "korvet_fast"


@pytest.fixture(scope="module")
def newer(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, ...]:
    """A command that runs the next version of the program: this one, but for the number that it writes into Redis."""
    place = tmp_path_factory.mktemp("newer")
    shutil.copytree(PACKAGE, place / PACKAGE.name, ignore=shutil.ignore_patterns("__pycache__"))
    schema = place / PACKAGE.name / "store" / "redis" / "schema.py"
    text = schema.read_text()
    assert text.count(f"SCHEMA = {SCHEMA} ") == 1
    schema.write_text(text.replace(f"SCHEMA = {SCHEMA} ", f"SCHEMA = {NEWER} "))
    return ("env", f"--chdir={place}")


def write_schema(server: RedisServer, version: object) -> None:
    server.call("HSET", HASH, KEY, str(version))


def dump(server: RedisServer) -> dict[bytes, bytes]:
    """Every key, and what Redis would write of it."""
    return {key: server.call("DUMP", key) for key in server.call("KEYS", "*")}


def refuse(url: str, command: str) -> str:
    """What a command says that ends badly over this store."""
    arguments = [command, "--store", url, "--listen", "kafka://127.0.0.1:0"]
    done = subprocess.run(
        [sys.executable, "-m", "korvet_fast", *arguments], capture_output=True, text=True, timeout=240
    )
    said = done.stdout + done.stderr
    assert done.returncode != 0, said
    assert "Traceback" not in said
    return " ".join(said.split())


@every_pair
def test_what_is_from_before_there_was_a_version_is_taken_over(serve: Serve, start_redis: StartRedis) -> None:
    """And all of it is served: the records, the producers that go on, one broker that had started before."""
    server = start_redis(appendonly="yes")
    brokers = [serve(server.url)]
    create_topic(brokers[0].bootstrap, "load", 2)
    load = Load(brokers[0].bootstrap)
    with load.running():
        load.wait_for(100)
        server.call("DEL", HASH, f"{{{HASH}}}:@writers")
        brokers.append(serve(server.url))
        assert server.call("HGET", HASH, KEY) == b"%d" % SCHEMA
        load.wait_for(100)
    for broker in brokers:
        broker.stop()
    server.call("DEL", HASH, f"{{{HASH}}}:@writers")
    brokers[0].start()
    assert server.call("HGET", HASH, KEY) == b"%d" % SCHEMA
    assert load.check(brokers[0].port) == set()


@every_pair
def test_brokers_of_two_versions_share_one_redis(serve: Serve, start_redis: StartRedis, newer: tuple[str, ...]) -> None:
    """A newer one joins an older one at work, and both lead. What stops then comes back only as the newer version."""
    server = start_redis(appendonly="yes")
    old = serve(server.url, *QUICK)
    create_topic(old.bootstrap, "load", PARTITIONS)
    load = Load(old.bootstrap, partitions=PARTITIONS)
    with load.running():
        load.wait_for(100)
        new = serve(server.url, *QUICK, before=newer)
        assert server.call("HGET", HASH, KEY) == b"%d" % NEWER
        for broker in (old, new):
            wait_for_leaders(broker, [old, new])
        load.bootstrap = bootstrap([old, new])
        load.add_writer("late")
        load.wait_for(100)
        assert old.stop() == 0
        assert f"its schema is {NEWER}, and {SCHEMA} is the newest known here" in refuse(server.url, "serve")
        wait_for_leaders(new, [new])
        load.wait_for(100)
        old.before = newer
        old.start()
        for broker in (old, new):
            wait_for_leaders(broker, [old, new])
        load.wait_for(100)
    assert load.check(new.port) == set()


@pytest.mark.parametrize("command", ["serve", "doctor"])
def test_what_a_newer_version_wrote_is_refused_and_untouched(
    serve: Serve, redis_server: RedisServer, command: str
) -> None:
    broker = serve(redis_server.url)

    async def write() -> None:
        async with connect(broker.port) as client:
            await client.create("t")
            assert (await client.produce("t", make_batch(b"kept")))["error_code"] == 0

    run(write)
    broker.stop()
    write_schema(redis_server, NEWER)
    before = dump(redis_server)
    said = refuse(redis_server.url, command)
    assert f"its schema is {NEWER}, and {SCHEMA} is the newest known here" in said
    assert "use that one, or another namespace" in said
    assert dump(redis_server) == before
    write_schema(redis_server, SCHEMA)
    broker.start()
    assert [value for _, value in read_log(broker.port, "t")[0]] == [b"kept"]


def test_what_is_no_version_is_told(redis_server: RedisServer) -> None:
    write_schema(redis_server, "one")
    assert "schema/version in Redis is b'one', which is no version" in refuse(redis_server.url, "serve")


def test_another_namespace_is_not_touched_by_it(serve: Serve, redis_server: RedisServer) -> None:
    write_schema(redis_server, NEWER)
    broker = serve(f"{redis_server.url}?namespace=ours")
    assert redis_server.call("HGET", "ours:@registry:schema", KEY) == b"%d" % SCHEMA
    assert broker.stop() == 0
