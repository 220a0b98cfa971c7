"""The FastAPI example: uvicorn as a process of its own, asked by a real HTTP client, over a real broker."""

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic, sleep

import httpx
import pytest
from confluent_kafka import Producer

from broker_process import BrokerProcess

ROOT = Path(__file__).parents[2]
LIMIT = 300.0  # seconds; a busy machine may take long
RUNNING = "Uvicorn running on "


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[BrokerProcess]:
    with BrokerProcess(tmp_path / "data") as broker:
        yield broker


@contextmanager
def serving(broker: BrokerProcess) -> Iterator[httpx.Client]:
    """The service as a process, and a client that asks it."""
    command = [sys.executable, "-m", "uvicorn", "examples.orders_service.service:app", "--port", "0", "--no-use-colors"]
    environment = os.environ | {"KAFKA": broker.bootstrap}
    with subprocess.Popen(
        command, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    ) as service:
        assert service.stderr is not None
        said: list[str] = []
        try:
            for line in service.stderr:  # ends when the service ends
                said.append(line)
                if RUNNING in line:
                    break
            else:
                raise AssertionError("the service did not start:\n" + "".join(said))
            rest = threading.Thread(target=said.extend, args=(service.stderr,), daemon=True)
            rest.start()
            address = said[-1].split(RUNNING, 1)[1].split()[0]
            with httpx.Client(base_url=address, timeout=LIMIT, trust_env=False) as client:
                yield client
            service.terminate()
            service.wait(LIMIT)
            rest.join(LIMIT)
            assert "Application shutdown complete." in "".join(said)
        finally:
            service.kill()


def order(client: httpx.Client, customer: str, cents: int) -> dict[str, int]:
    answer = client.post("/orders", json={"customer": customer, "cents": cents})
    assert answer.status_code == 201, answer.text
    return answer.json()


def test_a_total_has_every_order_and_survives_a_restart(broker: BrokerProcess) -> None:
    with serving(broker) as client:
        assert client.get("/customers/ada").json() == {"customer": "ada", "orders": 0, "cents": 0}
        stored = [order(client, "ada", cents) for cents in (250, 1000)]
        assert [each["offset"] for each in stored] == [0, 1]
        assert len({each["partition"] for each in stored}) == 1
        order(client, "grace", 99)
        assert client.get("/customers/ada").json() == {"customer": "ada", "orders": 2, "cents": 1250}
        # A second service sees the orders of the first.
        with serving(broker) as other:
            assert other.get("/customers/grace").json() == {"customer": "grace", "orders": 1, "cents": 99}
            order(other, "grace", 1)
        assert client.get("/customers/grace").json() == {"customer": "grace", "orders": 2, "cents": 100}
    with serving(broker) as client:
        assert client.get("/customers/ada").json() == {"customer": "ada", "orders": 2, "cents": 1250}


def test_what_is_no_order_is_refused_or_skipped(broker: BrokerProcess) -> None:
    with serving(broker) as client:
        for wrong in ({"customer": "", "cents": 5}, {"customer": "ada", "cents": 0}, {"customer": "ada"}):
            assert client.post("/orders", json=wrong).status_code == 422
        producer = Producer({"bootstrap.servers": broker.bootstrap})
        for partition in range(3):
            producer.produce("orders", b"not an order", partition=partition)
        assert producer.flush(LIMIT) == 0
        order(client, "ada", 7)
        assert client.get("/customers/ada").json() == {"customer": "ada", "orders": 1, "cents": 7}


def test_without_a_broker_requests_fail_and_work_again_when_it_is_back(broker: BrokerProcess) -> None:
    with serving(broker) as client:
        order(client, "ada", 1)
        broker.stop()
        refused = client.post("/orders", json={"customer": "grace", "cents": 2})
        assert (refused.status_code, "did not confirm the order" in refused.text) == (503, True)
        unread = client.get("/customers/ada")
        assert (unread.status_code, "cannot be read to their end" in unread.text) == (503, True)
        broker.start()
        until = monotonic() + LIMIT
        while client.post("/orders", json={"customer": "alan", "cents": 3}).status_code != 201:
            assert monotonic() < until
            sleep(0.1)
        while (total := client.get("/customers/ada")).status_code != 200:
            assert monotonic() < until
            sleep(0.1)
        assert total.json() == {"customer": "ada", "orders": 1, "cents": 1}
        assert client.get("/customers/alan").json()["orders"] >= 1
