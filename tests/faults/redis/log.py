"""Waits for log lines of a broker process."""

import time

from broker_process import BrokerProcess


def wait_for_line(broker: BrokerProcess, words: str, times: int = 1, within: float = 240.0) -> str:
    """Until so many lines of its log have these words; returns the last of them."""
    deadline = time.monotonic() + within
    while len(found := [line for line in list(broker.log) if words in line]) < times:
        assert time.monotonic() < deadline, f"the broker did not say {words!r}:\n" + "".join(broker.log[-20:])
        time.sleep(0.005)
    return found[times - 1]
