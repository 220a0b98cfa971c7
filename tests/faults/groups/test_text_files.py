"""`groups.json` and `offsets.json`: a true picture, whole after kill -9 at every step of every write."""

import json
import shutil
import sys
from pathlib import Path

import pytest

from broker_process import BrokerProcess
from redis_server import free_port
from text_client import TextClient

SETTINGS = ("num.partitions=3", "text.session.timeout.ms=600000")
DYING = Path(__file__).with_name("dying_text_broker.py")
STEPS = 6  # of a write


def read(data: Path, name: str) -> dict[str, object]:
    found: dict[str, object] = json.loads((data / name).read_text())
    return found


def test_the_files_are_a_true_picture(tmp_path: Path) -> None:
    data, port = tmp_path / "data", free_port()
    with BrokerProcess(data, *SETTINGS, arguments=("--listen", f"text://127.0.0.1:{port}")), TextClient(port) as client:
        assert "OK" in client.ask("V1|1|PRODUCE|seen :v acks=all")
        assert client.ask("V1|2|JOIN|g seen c1 assignor=range") == "V1|2|OK|generation=1 assigned=[0,1,2]"
        group = json.loads((data / "groups.json").read_text())["g"]
        assert [group[name] for name in ("topic", "generation", "assignor", "assignments")] == [
            "seen", 1, "range", {"c1": [0, 1, 2]}]  # fmt: skip
        assert [member["id"] for member in group["members"]] == ["c1"]
        assert client.ask("V1|3|COMMIT|g seen c1 1 2 17") == "V1|3|OK|committed=true"
        assert json.loads((data / "offsets.json").read_text())["g"]["seen"]["2"]["offset"] == 17


@pytest.fixture(scope="module")
def produced(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The data directory of a broker with one record in the topic `kept`; the broker has ended."""
    data, port = tmp_path_factory.mktemp("produced") / "data", free_port()
    with BrokerProcess(data, *SETTINGS, arguments=("--listen", f"text://127.0.0.1:{port}")), TextClient(port) as client:
        assert "OK" in client.ask("V1|1|PRODUCE|kept :v acks=all")
    return data


@pytest.mark.parametrize("step", range(1, 4 * STEPS + 1))
def test_a_kill_at_any_step_leaves_what_was_before_or_after(produced: Path, tmp_path: Path, step: int) -> None:
    """JOIN writes offsets and groups, the first COMMIT offsets, the second one again."""
    data, port = shutil.copytree(produced, tmp_path / "data"), free_port()
    arguments = ("--listen", f"text://127.0.0.1:{port}")
    asked = ["JOIN|g kept c1", "COMMIT|g kept c1 1 0 5", "COMMIT|g kept c1 1 0 7"]
    answered = 0
    before_it = (sys.executable, str(DYING), str(step))
    dying = BrokerProcess(data, *SETTINGS, before=before_it, arguments=arguments).start()
    with TextClient(port) as client:
        for line in asked:
            try:
                answer = client.ask(f"V1|2|{line}")
            except ConnectionError:
                break
            if not answer:
                break
            assert "|OK|" in answer
            answered += 1
    dying.kill()
    assert answered < len(asked)
    with BrokerProcess(data, *SETTINGS, arguments=arguments), TextClient(port) as client:
        there = client.ask("V1|3|SYNC|g kept c1 1") == "V1|3|OK|generation=1 assigned=[0,1,2]"
        offset = int(client.ask("V1|4|OFFSET|g kept 0").partition("offset=")[2])
        before, after = [(False, -1), (True, -1), (True, 5), (True, 7)][answered : answered + 2]
        assert (there, offset) in (before, after)
        assert client.ask("V1|5|JOIN|g kept c2").startswith("V1|5|OK|generation=")
        assert set(read(data, "groups.json")) == {"g"}
