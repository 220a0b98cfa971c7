"""/metrics of a real broker: what it says, whom it makes wait, and whether Prometheus likes it."""

import json
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from batches import make_batch
from broker_process import BrokerProcess
from kafka_server import API_VERSIONS, DELETE_RECORDS, RawClient, frame
from korvet_fast.cli.authority import open_authority
from korvet_fast.wire.http.metrics_table import METRICS, Kind
from metric_rows import Key, key, read_rows, scrape
from redis_server import RedisServer, free_port
from requirement import require
from second_client import PARTITIONS, SecondClient, forget_peak, peak_memory, set_up

ROOT = Path(__file__).parents[2]
DASHBOARD = ROOT / "docs" / "grafana-korvet-fast.json"
WITHIN = 120.0  # seconds: a busy machine may take long
WAIT = 0.01  # seconds of the broker's work that a client may wait for a scrape
ATTEMPTS = 5
DAY = 86_400.0  # seconds
MANY = 3000  # requests sent at once: far more than are begun in a millisecond
MEMORY = 96 << 20  # bytes that scrapes of 20,000 partitions may take: text, and the parts it is made of


class Operated:
    """A broker with an HTTP listener."""

    def __init__(self, process: BrokerProcess, port: int) -> None:
        self.process = process
        self.port = port

    def scrape(self) -> str:
        return scrape(self.port)

    def rows(self) -> dict[Key, float]:
        return read_rows(self.scrape())


@pytest.fixture(scope="module")
def operated(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Operated]:
    port = int(free_port())
    settings = (f"max.partitions={PARTITIONS + 2000}", "metrics.max.partitions=30000")
    place = tmp_path_factory.mktemp("operated") / "data"
    with BrokerProcess(place, *settings, arguments=("--listen", f"http://127.0.0.1:{port}")) as process:
        yield Operated(process, port)


def korvet(operated: Operated, *words: str, given: str = "") -> str:
    command = [sys.executable, "-m", "korvet_fast", *words, "--bootstrap", operated.process.bootstrap]
    done = subprocess.run(command, input=given, capture_output=True, text=True, timeout=WITHIN)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_what_clients_did_is_counted(operated: Operated) -> None:
    async def work(client: RawClient) -> dict[str, Any]:
        assert (await client.create("counted", 1))["error_code"] == 0
        for _ in range(3):
            assert (await client.produce("counted", make_batch([b"one", b"two"])))["error_code"] == 0
        return await client.fetch("counted", 0)

    fetched = set_up(operated.process.port, work)
    rows = operated.rows()
    stored = len(fetched["records"])
    prefix = "kafka_server_brokertopicmetrics"
    assert rows[key(f"{prefix}_messagesin_total", topic="counted")] == 6
    assert rows[key(f"{prefix}_bytesin_total", topic="counted")] == stored
    assert rows[key(f"{prefix}_bytesout_total", topic="counted")] == stored
    assert rows[key("kafka_log_log_size", topic="counted", partition="0")] == stored
    assert rows[key("kafka_topic_partition_current_offset", topic="counted", partition="0")] == 6
    assert rows[key("kafka_network_requestmetrics_requests_total", request="Produce")] >= 3
    assert rows[key("kafka_network_requestmetrics_totaltimems_sum", request="Fetch")] > 0
    assert rows[key("kafka_network_socketserver_memorypoolavailable")] <= 128 << 20


def test_requests_that_wait_for_their_turn_are_seen_to_wait(operated: Operated) -> None:
    async def flood(client: RawClient) -> None:
        # In one write: what is sent piece by piece is done as it comes, and waits for nothing.
        client.writer.write(b"".join(frame(client.request(API_VERSIONS, 0, {})) for _ in range(MANY)))
        for _ in range(MANY):
            await client.raw_reply()

    set_up(operated.process.port, flood)
    rows = operated.rows()
    of = {"request": "ApiVersions"}
    assert rows[key("kafka_network_requestmetrics_requestqueuetimems_sum", **of)] > 0
    waited = rows[key("kafka_network_requestmetrics_requestqueuetimems_count", **of)]
    assert waited == rows[key("kafka_network_requestmetrics_requests_total", **of)] >= MANY


async def produce_five(client: RawClient) -> None:
    assert (await client.create("five", 1))["error_code"] == 0
    for _ in range(5):
        assert (await client.produce("five", make_batch([b"value"])))["error_code"] == 0


def test_flushes_are_counted_with_their_time(operated: Operated) -> None:
    name = "kafka_log_logflushstats_logflushrateandtimems"
    before = operated.rows()
    set_up(operated.process.port, produce_five)
    rows = operated.rows()
    assert rows[key(f"{name}_count")] >= before[key(f"{name}_count")] + 5
    assert rows[key(f"{name}_sum")] > before[key(f"{name}_sum")]
    assert not [name for name, _ in rows if name.startswith("korvet_redis")]


def test_round_trips_to_redis_are_counted_with_their_time(redis_server: RedisServer, tmp_path: Path) -> None:
    port = int(free_port())
    arguments = ("--listen", f"http://127.0.0.1:{port}")
    with BrokerProcess(tmp_path, store=redis_server.url, arguments=arguments) as process:
        before = read_rows(scrape(port))
        set_up(process.port, produce_five)
        text = scrape(port)
    check_for_prometheus(text)
    rows = read_rows(text)
    name = "korvet_redis_roundtriptimems"
    assert rows[key(f"{name}_count")] >= before[key(f"{name}_count")] + 5
    assert rows[key(f"{name}_sum")] > before[key(f"{name}_sum")]
    assert rows[key("korvet_redis_synctimems_count")] == 0  # every answer of this server means flushed
    assert not [name for name, _ in rows if name.startswith("kafka_log_logflushstats")]


async def delete_records(topic: dict[str, Any], client: RawClient) -> None:
    await client.ask(DELETE_RECORDS, 2, topics=[topic], timeout_ms=30_000)


def test_lag_is_the_end_minus_the_committed_offset(operated: Operated) -> None:
    """As Kafka's tools compute it: also where the records between the two were deleted."""
    korvet(operated, "topic", "create", "lagging", "--partitions", "1")
    korvet(operated, "produce", "lagging", given="".join(f"value {number}\n" for number in range(60)))
    korvet(operated, "consume", "lagging", "--group", "readers", "--from", "earliest", "--count", "25")
    for deleted in (0, 40):
        topic = {"name": "lagging", "partitions": [{"partition_index": 0, "offset": deleted}]}
        set_up(operated.process.port, partial(delete_records, topic))
        (described,) = json.loads(korvet(operated, "group", "describe", "readers", "--json"))
        assert [row["lag"] for row in described["progress"] if row["partition"] == 0] == [60 - 25]
        got = {
            dict(labels)["partition"]: value
            for (name, labels), value in operated.rows().items()
            if name == "kafka_consumergroup_lag" and dict(labels)["consumergroup"] == "readers"
        }
        assert got == {"0": 60 - 25}


def test_a_scrape_of_20_000_partitions_lets_others_go_first(operated: Operated) -> None:
    row = set_up(operated.process.port, lambda client: client.create("wide", PARTITIONS))
    assert row["error_code"] == 0
    before = forget_peak(operated.process)
    waits: list[float] = []
    while len(waits) < ATTEMPTS and min(waits, default=1.0) > WAIT:
        second = SecondClient(operated.process)
        second.start()
        second.asking.wait()
        second.longest = 0.0
        text = operated.scrape()
        waits.append(second.finish())
        assert text.count("kafka_log_log_size{") >= PARTITIONS
    print(f"{len(text)} bytes; longest waits {waits}")
    assert min(waits) <= WAIT, waits
    assert peak_memory(operated.process) - before < MEMORY


def test_prometheus_reads_it_without_complaint(operated: Operated) -> None:
    check_for_prometheus(operated.scrape())


def check_for_prometheus(text: str) -> None:
    promtool = require("promtool")
    done = subprocess.run([promtool, "check", "metrics"], input=text, capture_output=True, text=True, timeout=WITHIN)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


def test_when_certificates_end_is_told_of_new_files_too(tmp_path: Path) -> None:
    port, authority = int(free_port()), open_authority(tmp_path)
    keystore = authority.issue_server(("127.0.0.1",), 90)
    arguments = ("--listen", f"http://127.0.0.1:{port}", "--listen", f"kafka+tls://127.0.0.1:{free_port()}")
    own = key("korvet_certificate_not_after_timestamp_seconds", file=str(keystore), subject="CN=127.0.0.1")
    with BrokerProcess(tmp_path / "data", f"ssl.keystore.location={keystore}", arguments=arguments) as process:
        text = scrape(port)
        check_for_prometheus(text)
        before = after = read_rows(text)[own]
        authority.issue_server(("127.0.0.1",), 10)
        deadline = time.monotonic() + WITHIN
        while after == before:
            assert time.monotonic() < deadline
            time.sleep(0.1)
            after = read_rows(scrape(port))[own]
    assert round((before - after) / DAY) == 80
    (said,) = [line for line in process.log if "put a new one there" in line]
    assert f"{keystore}: CN=127.0.0.1 ends on " in said


def test_the_dashboard_asks_for_nothing_that_is_not_served() -> None:
    served = set()
    for metric in METRICS:
        served |= {f"{metric.name}_sum", f"{metric.name}_count"} if metric.kind is Kind.SUMMARY else {metric.name}
    board = json.loads(DASHBOARD.read_text(encoding="utf-8"))
    asked = [target["expr"] for panel in board["panels"] for target in panel.get("targets", ())]
    assert len(asked) >= 10
    for expression in asked:
        names = set(re.findall(r"\b(?:kafka|korvet)_\w+", expression))
        assert names, expression
        assert names <= served, expression
