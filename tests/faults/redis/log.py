"""What a broker process says in its log."""

import re
import time

from broker_process import BrokerProcess
from history import PartitionOffset


def wait_for_line(broker: BrokerProcess, words: str, times: int = 1, within: float = 240.0) -> str:
    """Until so many lines of its log have these words; returns the last of them."""
    deadline = time.monotonic() + within
    while len(found := [line for line in list(broker.log) if words in line]) < times:
        assert time.monotonic() < deadline, f"the broker did not say {words!r}:\n" + "".join(broker.log[-20:])
        time.sleep(0.005)
    return found[times - 1]


def reported(broker: BrokerProcess, topic: str) -> set[PartitionOffset]:
    """Every place of the topic that the broker's log tells to be lost."""
    lost = re.compile(rf"(?<![\w.-]){re.escape(topic)}:(\d+): records were lost: offsets (\d+) to (\d+)")
    places: set[PartitionOffset] = set()
    for line in broker.log:
        for partition, first, last in lost.findall(line):
            places |= {(int(partition), offset) for offset in range(int(first), int(last) + 1)}
    return places
