"""py-spy looking at a real broker."""

import subprocess
import time
from pathlib import Path

import pytest

from benchmarks.peers.process import PeerError
from benchmarks.profile import PLACES, Shares, watch
from broker_process import BrokerProcess


def test_a_broker_without_work_waits(tmp_path: Path) -> None:
    shares: Shares = {}
    with BrokerProcess(tmp_path) as broker, watch(broker.pid, shares):
        time.sleep(1)  # what is looked at: a second of nothing
    assert shares["waiting"] > 0.5
    assert set(shares) <= set(PLACES)
    assert sum(shares.values()) == pytest.approx(1)


def test_a_process_that_cannot_be_looked_at_is_named() -> None:
    with subprocess.Popen(["sleep", "60"]) as stranger:
        try:
            with pytest.raises(PeerError, match=f"process {stranger.pid}"), watch(stranger.pid, {}):
                pytest.fail("there is no Python in it")
        finally:
            stranger.terminate()
