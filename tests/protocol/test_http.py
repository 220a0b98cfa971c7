"""The HTTP listener of a real broker: probes while it starts, serves, loses its store and stops; wrong clients."""

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest
from confluent_kafka import Producer

from broker_process import BrokerProcess
from korvet_fast.wire.http.metrics_table import FAILED_PRODUCES
from metric_rows import key, read_rows
from redis_server import RedisServer, free_port

WITHIN = 120.0  # seconds: a busy machine may take long


def get(port: int, path: str, **headers: str) -> tuple[int, bytes]:
    """Status and body, over a connection of its own."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=WITHIN)
    try:
        connection.request("GET", path, headers=headers)
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def wait_for(port: int, path: str, expected: tuple[int, bytes]) -> None:
    """Wait until this is the answer."""
    deadline = time.monotonic() + WITHIN
    answer: object = None
    while time.monotonic() < deadline:
        try:
            answer = get(port, path)
        except OSError as error:
            answer = error
        if answer == expected:
            return
        time.sleep(0.05)
    raise AssertionError(f"{path} is still answered with {answer!r}")


@pytest.fixture
def port() -> int:
    return free_port()


@pytest.fixture
def broker(tmp_path: Path, port: int) -> Iterator[BrokerProcess]:
    with BrokerProcess(tmp_path / "data", arguments=("--listen", f"http://127.0.0.1:{port}")) as running:
        yield running


def test_probes_of_a_broker_that_serves(broker: BrokerProcess, port: int) -> None:
    assert get(port, "/livez") == (200, b"ok\n")
    assert get(port, "/readyz") == (200, b"ok\n")
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=WITHIN)
    for _ in range(3):  # the connection is kept
        connection.request("GET", "/readyz")
        first = connection.sock
        assert connection.getresponse().read() == b"ok\n"
        assert connection.sock is first
    connection.close()
    assert broker.stop() == 0
    assert not [line for line in broker.log if "warning" in line], broker.log


def test_a_wrong_client_is_told_and_its_connection_ends(broker: BrokerProcess, port: int) -> None:
    cases = {
        b"\0\0\0\x18\0\x12\0\4abcd": b"HTTP/1.1 400 ",  # a client of Kafka
        b"POST /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 33\r\n\r\n"
        b"GET /livez HTTP/1.1\r\nHost: a\r\n\r\n": b"HTTP/1.1 413 ",
        b"GET /" + b"a" * 70_000 + b" HTTP/1.1\r\n\r\n": b"HTTP/1.1 431 ",
    }
    for sent, expected in cases.items():
        with socket.create_connection(("127.0.0.1", port), WITHIN) as client:
            client.sendall(sent)
            client.shutdown(socket.SHUT_WR)
            got = b""
            with suppress(ConnectionResetError):  # behind the answer, where the broker closes with bytes unread
                while data := client.recv(65536):
                    got += data
            assert got.startswith(expected), got
            assert got.count(b"HTTP/1.1") == 1
    assert get(port, "/livez")[0] == 200
    assert broker.stop() == 0


def test_a_broker_that_waits_for_its_peers_is_live_and_not_ready(tmp_path: Path, port: int) -> None:
    secret, peers = tmp_path / "secret", (free_port(), free_port())
    secret.write_text("0123456789abcdef0123456789abcdef")
    command = [sys.executable, "-m", "korvet_fast", "serve", "--store", f"file:{tmp_path / 'data'}"]
    for listener in (f"kafka://127.0.0.1:{free_port()}", f"replica://127.0.0.1:{peers[0]}", f"http://127.0.0.1:{port}"):
        command += ["--listen", listener]
    named = ",".join(f"{number}@127.0.0.1:{peer}" for number, peer in enumerate(peers, 1))
    for setting in ("node.id=1", f"replication.peers={named}", f"replication.secret.file={secret}"):
        command += ["--set", setting]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        wait_for(port, "/livez", (200, b"ok\n"))
        assert get(port, "/readyz") == (503, b"the broker is starting\n")
        process.send_signal(signal.SIGTERM)
        assert process.stderr is not None
        said = process.stderr.read()
    assert process.returncode == 0, said


def test_a_broker_whose_redis_is_away_is_not_ready_and_comes_back(
    tmp_path: Path, port: int, start_redis: Callable[..., RedisServer]
) -> None:
    redis = start_redis(appendonly="yes")
    settings = ("broker.heartbeat.interval.ms=200", "broker.session.timeout.ms=1000")
    arguments = ("--listen", f"http://127.0.0.1:{port}")
    with BrokerProcess(tmp_path, *settings, store=redis.url, arguments=arguments):
        wait_for(port, "/readyz", (200, b"ok\n"))
        redis.pause()
        try:
            away = b"the store has not answered for nearly broker.session.timeout.ms\n"
            wait_for(port, "/readyz", (503, away))
            assert get(port, "/livez") == (200, b"ok\n")
        finally:
            redis.resume()
        wait_for(port, "/readyz", (200, b"ok\n"))


def test_a_broker_whose_redis_may_evict_is_not_ready_and_its_refusals_are_counted(
    tmp_path: Path, port: int, start_redis: Callable[..., RedisServer]
) -> None:
    def count() -> float:
        return read_rows(get(port, "/metrics")[1].decode())[key(FAILED_PRODUCES.name)]

    redis = start_redis(appendonly="yes")
    with BrokerProcess(tmp_path, store=redis.url, arguments=("--listen", f"http://127.0.0.1:{port}")) as broker:
        producer = Producer({"bootstrap.servers": broker.bootstrap, "retries": 0})
        producer.produce("t", b"x")
        assert producer.flush(WITHIN) == 0
        before = count()
        redis.call("CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
        deadline = time.monotonic() + WITHIN
        while (told := get(port, "/readyz"))[0] == 200 and time.monotonic() < deadline:
            time.sleep(0.05)
        assert told[0] == 503
        assert b"its maxmemory-policy is allkeys-lru" in told[1]
        failures: list[object] = []
        producer.produce("t", b"x", on_delivery=lambda error, _: failures.append(error))
        assert producer.flush(WITHIN) == 0
        assert [error is None for error in failures] == [False]  # KafkaError cannot be compared with None
        assert count() == before + 1
        redis.call("CONFIG", "SET", "maxmemory-policy", "noeviction")
        wait_for(port, "/readyz", (200, b"ok\n"))


def test_a_listener_that_strangers_reach_needs_a_token(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "korvet_fast", "serve", "--store", f"file:{tmp_path / 'data'}"]
    command += ["--listen", "kafka://127.0.0.1:0", "--listen", "http://0.0.0.0:0"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=WITHIN)
    assert done.returncode == 2
    assert "--set http.token.file=FILE, or listen on 127.0.0.1" in done.stderr
    missing = subprocess.run(
        [*command, "--set", f"http.token.file={tmp_path / 'token'}"], capture_output=True, text=True, timeout=WITHIN
    )
    assert missing.returncode == 1
    assert "No such file" in missing.stderr
    (tmp_path / "token").write_text("0123456789abcdef")
    environment = os.environ | {"KORVET_HTTP_TOKEN_FILE": str(tmp_path / "token")}
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stderr is not None
        lines = [json.loads(process.stderr.readline()) for _ in range(3)]
        process.send_signal(signal.SIGTERM)
        process.stderr.read()
    assert process.returncode == 0
    said = [line["message"] for line in lines]
    assert any(line.startswith("ready http://0.0.0.0:") for line in said), said
    assert any("the token of http.token.file can be read on the way" in line for line in said), said


def test_health_is_public_and_the_rest_is_not(tmp_path: Path, port: int) -> None:
    (tmp_path / "token").write_text("0123456789abcdef\n")
    arguments = ("--listen", f"http://127.0.0.1:{port}")
    with BrokerProcess(tmp_path / "data", f"http.token.file={tmp_path / 'token'}", arguments=arguments):
        assert get(port, "/livez")[0] == get(port, "/readyz")[0] == 200
        assert get(port, "/metrics")[0] == 401
        assert get(port, "/metrics", Authorization="Bearer 0123456789abcdeX")[0] == 401
        assert get(port, "/metrics", Authorization="Basic 0123456789abcdef")[0] == 401
        assert get(port, "/metrics", Authorization="Bearer 0123456789abcdef")[0] == 200
        assert get(port, "/metrics", Authorization="bearer 0123456789abcdef")[0] == 200


def test_connections_of_operators_take_none_from_clients(tmp_path: Path, port: int) -> None:
    """More silent ones than operators may have at a time: Kafka's clients, and a probe, are served beside them."""
    arguments = ("--listen", f"http://127.0.0.1:{port}")
    with BrokerProcess(tmp_path / "data", "max.connections=5", arguments=arguments) as broker:
        silent = [socket.create_connection(("127.0.0.1", port), WITHIN) for _ in range(80)]
        try:
            for client in silent:
                client.sendall(b"GET /livez HTTP/1.1\r\n")
            assert get(port, "/livez") == (200, b"ok\n")
            with socket.create_connection(("127.0.0.1", broker.port), WITHIN) as kafka:
                kafka.sendall(b"\0\0\0\x0a\0\x12\0\0next\0\0")
                assert kafka.recv(4096)[4:8] == b"next"
        finally:
            for client in silent:
                client.close()


def test_requests_begun_and_not_finished_keep_no_probe_out(tmp_path: Path, port: int) -> None:
    """Each connection has had one answer, and holds the first byte of a next request; of more than one address."""
    arguments = ("--listen", f"http://127.0.0.1:{port}")
    whole = b"GET /livez HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
    with BrokerProcess(tmp_path / "data", arguments=arguments) as broker, ExitStack() as held:
        for number in range(100):
            client = socket.create_connection(("127.0.0.1", port), WITHIN, (f"127.0.0.{2 + number % 5}", 0))
            held.callback(client.close)
            with suppress(ConnectionError):  # it may be one too many
                client.sendall(whole + b"G")
                client.recv(4096)
        assert get(port, "/livez") == (200, b"ok\n")
        assert get(port, "/readyz") == (200, b"ok\n")
        assert broker.stop() == 0
