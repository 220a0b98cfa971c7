"""The fixtures of the pytest plugin, in a project of their own: found by the entry point, beside pytest-xdist."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from redis_server import RedisServer

PROJECT = '''
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient

def send(address):
    """Send a record to a new topic; the addresses of brokers are kept for who counts them."""
    assert list(AdminClient({"bootstrap.servers": address}).list_topics(timeout=60).topics) == []
    producer = Producer({"bootstrap.servers": address})
    producer.produce("orders", b"one")
    assert producer.flush(60) == 0

@pytest.mark.parametrize("number", range(3))
def test_each_has_a_broker(korvet, number, worker_id):
    send(korvet)

@pytest.fixture(scope="session")
def filled(korvet_session):
    send(korvet_session)
    return korvet_session

@pytest.mark.parametrize("number", range(6))
def test_all_of_a_worker_have_one(filled, korvet_session, number, worker_id):
    assert filled == korvet_session
    Path(f"{worker_id}-{number}.txt").write_text(korvet_session)
'''


def run_project(directory: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    """Run the project's tests with both workers of pytest-xdist."""
    (directory / "test_orders.py").write_text(PROJECT)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-n", "2", "--rootdir", "."]
    return subprocess.run(
        [*command, *arguments], cwd=directory, env=environment, capture_output=True, text=True, check=False
    )


def test_every_worker_has_brokers_of_its_own(tmp_path: Path) -> None:
    ran = run_project(tmp_path)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "9 passed" in ran.stdout
    brokers = {file.name[:3]: file.read_text() for file in tmp_path.glob("gw*.txt")}
    assert len(set(brokers.values())) == len(brokers)


@pytest.mark.parametrize("way", ["option", "ini"])
def test_workers_share_a_redis_and_nothing_in_it(tmp_path: Path, redis_server: RedisServer, way: str) -> None:
    if way == "ini":
        (tmp_path / "pytest.ini").write_text(f"[pytest]\nkorvet_store = {redis_server.url}\n")
    ran = run_project(tmp_path, *(("--korvet-store", redis_server.url) if way == "option" else ()))
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "9 passed" in ran.stdout
    assert int(redis_server.info("stats")["total_commands_processed"]) > 100
    assert redis_server.call("DBSIZE") == 0


def test_a_store_that_is_none_is_one_sentence(tmp_path: Path) -> None:
    ran = run_project(tmp_path, "--korvet-store", "radis://localhost")
    assert ran.returncode == 1
    assert "SettingError" in ran.stdout
    assert "redis" in ran.stdout
