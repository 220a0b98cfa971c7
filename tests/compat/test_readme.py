"""The README's quick start, run as it stands: same commands, same port, same Python."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from requirement import require

README = (Path(__file__).parents[2] / "README.md").read_text()
SECTION = README.split("## Quick start")[1].split("\n## ")[0]
BLOCKS = re.findall(r"```(sh|python)\n(.*?)```", SECTION, re.DOTALL)


def blocks(language: str) -> list[str]:
    return [text for found, text in BLOCKS if found == language]


@pytest.fixture(scope="module")
def environment() -> dict[str, str]:
    """Finds `korvet-fast` where this Python has it installed."""
    return {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}


@pytest.fixture(scope="module")
def serving(tmp_path_factory: pytest.TempPathFactory, environment: dict[str, str]) -> Iterator[Path]:
    """The first block: install (already done), then serve, in a directory of its own."""
    install, serve = blocks("sh")[0].splitlines()
    assert install == "pip install korvet-fast"
    directory = tmp_path_factory.mktemp("readme")
    process = subprocess.Popen(
        serve.split(), cwd=directory, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    assert process.stdout is not None
    for line in process.stdout:
        if "ready kafka://127.0.0.1:9092" in line:
            break
    else:
        pytest.fail("the broker did not say it was ready")
    yield directory
    process.send_signal(signal.SIGTERM)
    assert process.wait(20) == 0
    process.stdout.close()


def shell(text: str, directory: Path, environment: dict[str, str]) -> str:
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", text], cwd=directory, env=environment, capture_output=True, timeout=60
    )
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode()


def test_quick_start(serving: Path, environment: dict[str, str]) -> None:
    require("kcat")
    _, command_line, kcat = blocks("sh")
    assert "order-123 1 widget" in shell(command_line, serving, environment)
    (example,) = blocks("python")
    script = serving / "example.py"
    script.write_text(example)
    printed = shell(f"{sys.executable} {script}", serving, environment)
    assert "stored at offset" in printed
    assert "b'order-124' b'3 gadgets'" in printed
    assert "a sprocket" in shell(kcat, serving, environment)
    assert (serving / "korvet-data").is_dir()
