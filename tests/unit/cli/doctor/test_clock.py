"""What doctor says of this machine's clock."""

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from korvet_fast.cli import root
from korvet_fast.cli.doctor.clock import examine_files_clock, judge_clock
from korvet_fast.cli.doctor.finding import Verdict
from redis_server import RedisServer


@pytest.mark.parametrize(
    ("ahead", "verdict", "words"),
    [
        (0.0, Verdict.GOOD, "this machine's and that of redis:6379 are less than 5 s apart"),
        (-4.0, Verdict.GOOD, "less than 5 s apart"),
        (7200.0, Verdict.WARN, "this machine's is 7,200 s ahead of that of redis:6379, and one of them is wrong"),
        (-60.0, Verdict.WARN, "this machine's is 60 s behind that of redis:6379"),
    ],
)
def test_two_clocks(ahead: float, verdict: Verdict, words: str) -> None:
    finding = judge_clock(ahead, "redis:6379")
    assert finding.verdict is verdict
    assert words in finding.sentence


def test_the_clock_went_back_since_a_broker_wrote(tmp_path: Path) -> None:
    assert list(examine_files_clock(tmp_path / "none")) == list(examine_files_clock(tmp_path)) == []
    file = tmp_path / "@registry"
    file.touch()
    (finding,) = examine_files_clock(tmp_path)
    assert finding.verdict is Verdict.GOOD
    later = time.time() + 3600
    os.utime(file, (later, later))
    (finding,) = examine_files_clock(tmp_path)
    assert finding.verdict is Verdict.WARN
    assert f" s behind the last change of {file}" in finding.sentence


def test_doctor_looks_at_the_clock(tmp_path: Path, start_redis: Callable[..., RedisServer]) -> None:
    (tmp_path / "file").touch()
    for store, words in (
        (f"file:{tmp_path}", f"nothing in {tmp_path} is newer than now"),
        (start_redis(appendonly="yes").url, "are less than 5 s apart"),
    ):
        result = CliRunner().invoke(root, ["doctor", "--store", store, "--listen", "kafka://127.0.0.1:0"])
        (line,) = [line for line in result.output.splitlines() if " clock " in line]
        assert words in line
