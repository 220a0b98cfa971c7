"""A fixture for the tests of a program that uses Kafka: a broker of their own, on a free port."""

import re
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import TextIO

import pytest


@pytest.fixture(scope="session")
def bootstrap(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a broker that lives as long as the test session. Its records lie in a directory of pytest's."""
    data = tmp_path_factory.mktemp("broker")
    log = data.with_suffix(".log")
    command = [sys.executable, "-m", "korvet_fast", "serve"]
    command += ["--store", f"file:{data}", "--listen", "kafka://127.0.0.1:0"]
    with log.open("w") as writing, log.open() as reading:
        broker = subprocess.Popen(command, stdout=writing, stderr=subprocess.STDOUT)
        try:
            yield _address(broker, reading)
        finally:
            broker.terminate()
            assert broker.wait(30) == 0, log.read_text()


def _address(broker: "subprocess.Popen[bytes]", log: TextIO) -> str:
    """HOST:PORT, when the broker says that clients may connect."""
    said = ""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline and broker.poll() is None:
        said += log.read()
        if found := re.search(r"ready kafka://([\w.:]+)", said):
            return found[1]
        time.sleep(0.05)
    raise RuntimeError(f"the broker was not ready within 30 seconds:\n{said}")
