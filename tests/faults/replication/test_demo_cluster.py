"""`demo-cluster` tells the truth, leaves nothing behind, and says what failed."""

import os
import subprocess
import sys
from pathlib import Path

import click
import pytest

from broker_process import BrokerProcess
from korvet_fast.cli.demo_brokers import DemoBrokers
from korvet_fast.cli.demo_orders import Orders
from korvet_fast.client.cluster import Cluster
from korvet_fast.client.producer import DeliveryFailed
from korvet_fast.client.protocol.errors import ClientError
from korvet_fast.endpoint import read_bootstrap


def test_the_leader_is_killed_and_nothing_is_missing(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "korvet_fast", "demo-cluster"]
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ | {"TMPDIR": str(tmp_path)})
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    assert done.stdout.count("each once and in order") == 2
    for words in ("is killed with -9", "partition lead orders 0 --broker", "is in sync again"):
        assert words in done.stdout
    assert list(tmp_path.iterdir()) == []


async def test_a_broker_that_cannot_start_is_told_with_its_last_words(tmp_path: Path) -> None:
    (tmp_path / "broker-2").write_text("no directory")
    brokers = DemoBrokers(tmp_path)
    with pytest.raises(ClientError, match=r"broker 2 has ended before it was ready:\n(.|\n)*broker-2"):
        await brokers.__aenter__()


async def test_orders_that_are_missing_or_not_the_ones_sent_are_noticed(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path / "data", "durability=written") as broker:
        bootstrap = read_bootstrap(broker.bootstrap)
        async with Orders(bootstrap) as orders:
            await orders.wait_for(3)
        async with Cluster(bootstrap) as cluster:
            await orders.check(cluster, orders.acknowledged)
            with pytest.raises(click.ClickException, match="records were acknowledged, and these are not what is"):
                await orders.check(cluster, orders.acknowledged + 1)
        async with Orders(bootstrap) as second:
            await second.wait_for(1)
        async with Cluster(bootstrap) as cluster:
            with pytest.raises(click.ClickException, match="records were acknowledged"):
                await orders.check(cluster, orders.acknowledged)


async def test_who_waits_for_records_hears_that_they_cannot_be_sent(tmp_path: Path) -> None:
    broker = BrokerProcess(tmp_path / "data", "auto.create.topics.enable=false")
    with broker, pytest.raises(DeliveryFailed, match="orders"):
        async with Orders(read_bootstrap(broker.bootstrap), patience=0.5) as orders:
            await orders.wait_for(1)
