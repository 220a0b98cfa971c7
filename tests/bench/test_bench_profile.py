"""py-spy looking at a real broker."""

import subprocess
import time
from pathlib import Path

import pytest

from benchmarks.peers.process import PeerError
from benchmarks.profile import PLACES, Shares, watch
from broker_process import BrokerProcess

PATIENCE = 200.0  # seconds


def test_a_broker_without_work_waits(tmp_path: Path) -> None:
    """As soon as it has nothing to do any more of its start, on a busy machine."""
    shares: Shares = {}
    with BrokerProcess(tmp_path) as broker:
        until = time.monotonic() + PATIENCE
        while shares.get("waiting", 0.0) <= 0.5:
            assert time.monotonic() < until, shares
            shares.clear()
            with watch(broker.pid, shares):
                time.sleep(1)  # what is looked at: a second of nothing
    assert set(shares) <= set(PLACES)
    assert sum(shares.values()) == pytest.approx(1)


def test_a_process_that_cannot_be_looked_at_is_named() -> None:
    with subprocess.Popen(["sleep", "60"]) as stranger:
        try:
            with pytest.raises(PeerError, match=f"process {stranger.pid}"), watch(stranger.pid, {}):
                pytest.fail("there is no Python in it")
        finally:
            stranger.terminate()
