"""The package's version."""

import importlib.metadata
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import korvet_fast

ROOT = Path(__file__).parents[2]
SAY = "import korvet_fast; print(korvet_fast.__version__)"


def test_the_version_is_that_of_the_distribution() -> None:
    assert korvet_fast.__version__ == importlib.metadata.version("korvet-fast")


def test_a_package_without_its_distribution_has_none() -> None:
    tree = str(Path(korvet_fast.__file__).parents[1])
    alone = os.environ | {"PYTHONPATH": tree}
    said = subprocess.run([sys.executable, "-S", "-c", SAY], env=alone, capture_output=True, text=True, check=True)
    assert said.stdout.strip() == "unknown"


def test_it_stands_in_all_places_alike() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    crates = tomllib.loads((ROOT / "Cargo.toml").read_text(encoding="utf-8"))["workspace"]["package"]["version"]
    assert project == crates
    assert f"\n## [{project}]" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
