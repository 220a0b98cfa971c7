"""Where a worker of Spark imports PySpark from: Python with the path that Spark gives it, and ours."""

import os
import subprocess
import sys
from pathlib import Path

import pyspark

from korvet_fast.spark.session import WORKER_PATH

PACKAGE = Path(pyspark.__file__).parent
ARCHIVES = [str(archive) for archive in (PACKAGE / "python" / "lib").glob("*.zip")]


def run(path: list[str], program: str) -> str:
    """The output of a new Python with this path."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path)}
    command = [sys.executable, "-c", program]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout.strip()


def test_from_the_directory_and_not_from_the_archive() -> None:
    program = "import py4j, pyspark; print(pyspark.__file__, py4j.__file__)"
    assert run(ARCHIVES, program).count(".zip") == 2  # as Spark has it
    assert run([*ARCHIVES, WORKER_PATH], program).split()[0] == pyspark.__file__
    assert ".zip" not in run([*ARCHIVES, WORKER_PATH], program)


def test_through_a_link(tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(PACKAGE.parent)
    path = [str(link / Path(archive).relative_to(PACKAGE.parent)) for archive in ARCHIVES]
    assert run([*path, WORKER_PATH], "import pyspark; print(pyspark.__file__)") == pyspark.__file__


def test_from_the_archive_where_there_is_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "pyspark/python/lib").mkdir(parents=True)
    archive = str(tmp_path / "pyspark/python/lib/pyspark.zip")
    assert archive in run([archive, WORKER_PATH], "import sys; print(sys.path)")


def test_another_file_of_that_name_is_run(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("print('the other one')\n")
    assert run([WORKER_PATH, str(tmp_path)], "import sitecustomize; print(sitecustomize.__file__)") == (
        f"the other one\n{tmp_path / 'sitecustomize.py'}"
    )
