"""How many cores a process has, where its control groups (version 1 or 2) leave it less than the machine has."""

import os
from pathlib import Path

import pytest

from korvet_fast.cli.cores import count_cores


@pytest.fixture(autouse=True)
def machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """One with 64 cores."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(64)))


@pytest.mark.parametrize(
    ("groups", "files", "cores"),
    [
        ("0::/", {"cpu.max": "200000 100000\n"}, 2),
        ("0::/", {"cpu.max": "250000 100000\n"}, 3),
        ("0::/", {"cpu.max": "10000 100000\n"}, 1),
        ("0::/", {"cpu.max": "max 100000\n"}, 64),
        ("0::/", {"cpu.max": "9900000 100000\n"}, 64),
        ("0::/a/b", {"a/b/cpu.max": "max 100000\n", "a/cpu.max": "400000 100000\n"}, 4),
        ("0::/a/b", {"a/b/cpu.max": "300000 100000\n", "a/cpu.max": "400000 100000\n"}, 3),
        ("0::/of/the/host", {"cpu.max": "200000 100000\n"}, 2),
        (
            "5:memory:/x\n4:cpu,cpuacct:/x\n",
            {"cpu/x/cpu.cfs_quota_us": "150000\n", "cpu/x/cpu.cfs_period_us": "50000\n"},
            3,
        ),
        (
            "4:cpuacct,cpu:/of/the/host\n0::/\n",
            {"cpu/cpu.cfs_quota_us": "200000\n", "cpu/cpu.cfs_period_us": "100000\n"},
            2,
        ),
        ("4:cpu:/\n", {"cpu/cpu.cfs_quota_us": "-1\n", "cpu/cpu.cfs_period_us": "100000\n"}, 64),
        ("4:cpuset:/\n", {"cpu/cpu.cfs_quota_us": "100000\n", "cpu/cpu.cfs_period_us": "100000\n"}, 64),
        ("0::/", {}, 64),
        ("", {}, 64),
    ],
)
def test_cores(tmp_path: Path, groups: str, files: dict[str, str], cores: int) -> None:
    mounted = tmp_path / "mounted"
    for name, text in files.items():
        file = mounted / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    (tmp_path / "groups").write_text(groups)
    assert count_cores(tmp_path / "groups", mounted) == cores


def test_without_control_groups_it_is_the_cores(tmp_path: Path) -> None:
    assert count_cores(tmp_path / "none", tmp_path) == 64
