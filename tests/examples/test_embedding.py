"""docs/embedding.md, run as its readers would: each Python block is a test file of a project."""

import os
import re
import subprocess
import sys
from pathlib import Path

DOCUMENT = Path(__file__).parents[2] / "docs" / "embedding.md"


def test_every_block_passes(tmp_path: Path) -> None:
    blocks = re.findall(r"^```python\n(.*?)^```", DOCUMENT.read_text(), re.MULTILINE | re.DOTALL)
    assert blocks
    for number, block in enumerate(blocks):
        (tmp_path / f"test_block_{number}.py").write_text(block)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", "."]
    ran = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert f"{len(blocks)} passed" in ran.stdout
