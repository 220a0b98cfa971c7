"""What brokers that keep each other's copies tell of the metadata log, by their metrics."""

import time
from collections.abc import Callable

from faults.replication.trio import PATIENCE, Trio
from metric_rows import key, read_rows
from metric_rows import scrape as scrape_all

OFFLINE = "kafka_controller_kafkacontroller_offlinepartitionscount"
UNDER_REPLICATED = "kafka_server_replicamanager_underreplicatedpartitions"
CONTROLLERS = "kafka_controller_kafkacontroller_activecontrollercount"
LEADER = "kafka_server_raftmetrics_current_leader"


def scrape(trio: Trio, broker: int) -> dict[str, float]:
    """The metrics without labels of one broker."""
    rows = read_rows(scrape_all(trio.webs[broker]))
    return {name: rows[key(name)] for name in (OFFLINE, UNDER_REPLICATED, CONTROLLERS, LEADER)}


def until(trio: Trio, rule: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not rule():
        assert time.monotonic() < deadline, trio.tell()
        time.sleep(0.1)
