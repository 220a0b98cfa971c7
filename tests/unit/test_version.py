"""The package's version."""

import importlib.metadata
import os
import subprocess
import sys
from pathlib import Path

import korvet_fast

SAY = "import korvet_fast; print(korvet_fast.__version__)"


def test_the_version_is_that_of_the_distribution() -> None:
    assert korvet_fast.__version__ == importlib.metadata.version("korvet-fast")


def test_a_package_without_its_distribution_has_none() -> None:
    tree = str(Path(korvet_fast.__file__).parents[1])
    alone = os.environ | {"PYTHONPATH": tree}
    said = subprocess.run([sys.executable, "-S", "-c", SAY], env=alone, capture_output=True, text=True, check=True)
    assert said.stdout.strip() == "unknown"
