"""The README's section `A pipeline on Spark`, run as it stands."""

import subprocess
import sys
from pathlib import Path

import pytest
from pyarrow import parquet

from compat.test_readme import alone_on_its_ports, blocks, environment, serving
from requirement import require

__all__ = ["alone_on_its_ports", "environment"]  # fixtures


def shell(text: str, directory: Path, environment: dict[str, str]) -> str:
    """The output of a block. Spark's start takes its time."""
    command = ["bash", "-euo", "pipefail", "-c", text]
    done = subprocess.run(command, cwd=directory, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.timeout(400)  # three times Spark is started
def test_a_pipeline_on_spark(tmp_path: Path, environment: dict[str, str]) -> None:
    require("java")
    install, commands, consume = blocks("A pipeline on Spark", "sh")
    assert install == "pip install 'korvet-fast[spark]'\n"
    (example,) = blocks("A pipeline on Spark", "python")
    (shown,) = blocks("A pipeline on Spark", "text")
    (tmp_path / "example.py").write_text(example)
    with serving("korvet-fast serve", 9092, tmp_path, environment):
        shell(commands, tmp_path, environment)
        assert parquet.read_table(tmp_path / "flights-parquet").num_rows == 3
        shell(f"{sys.executable} example.py", tmp_path, environment)
        assert sorted(shell(consume, tmp_path, environment).splitlines()) == sorted(shown.splitlines())
