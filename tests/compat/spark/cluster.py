"""A standalone Spark on this machine: a master and workers as processes, and what executors need as an archive."""

import os
import re
import shutil
import subprocess
import sys
import tarfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import psutil
import pyspark

from benchmarks.peers.spark.environment import INSTALL, LOCKS
from requirement import missing

TREE = Path(__file__).parents[3]
HOME = Path(pyspark.__file__).parent
READY_WITHIN = 200.0


def bare_python() -> Path:
    """The Python under this virtual environment, which has neither the environment's packages nor this project's."""
    python = Path(sys.base_prefix) / "bin" / f"python3.{sys.version_info.minor}"
    done = subprocess.run([python, "-c", "import korvet_fast"], capture_output=True, text=True, cwd="/", env={})
    if done.returncode == 0:
        missing(f"{python} has korvet_fast: there is no Python here that has it from the archive alone")
    return python


def build_packages(place: Path) -> Path:
    """A directory with the wheel and pyarrow, as `pip install --target` makes it."""
    wheels, packages = place / "wheels", place / "packages"
    maturin = [
        str(Path(sys.executable).with_name("maturin")),
        "build",
        "--release",
        "--locked",
        "--quiet",
        "--out",
        str(wheels),
    ]
    _run(maturin, cwd=TREE)
    (wheel,) = wheels.glob("korvet_fast-*.whl")
    pip, target = [sys.executable, "-m", "pip"], ["--target", str(packages)]
    _run([*pip, "install", "--quiet", *target, "--no-deps", str(wheel)])
    _run([*pip, *INSTALL, str(LOCKS / "pyarrow.txt"), *target])
    shutil.rmtree(packages / "pyarrow" / "include", ignore_errors=True)
    return packages


def pack(packages: Path) -> Path:
    """The same as an archive that Spark unpacks beside each executor."""
    archive = packages.with_suffix(".tar.gz")
    with tarfile.open(archive, "w:gz", compresslevel=1) as tar:
        tar.add(packages, arcname=".")
    return archive


def _run(command: list[str], cwd: Path | None = None) -> None:
    done = subprocess.run(command, capture_output=True, text=True, cwd=cwd)
    assert done.returncode == 0, f"{' '.join(command)}:\n{done.stdout}{done.stderr}"


def driver_environment(packages: Path) -> dict[str, str]:
    """Where a Python that has nothing finds PySpark, as `spark-submit` tells it, and the packages."""
    spark = sorted((HOME / "python" / "lib").glob("*.zip"))
    return {"SPARK_HOME": str(HOME), "PYTHONPATH": os.pathsep.join(map(str, [packages, *spark]))}


class Cluster:
    """`master`: its URL. `workers`: their processes; executors are children of theirs."""

    def __init__(self, master: str, workers: list["subprocess.Popen[bytes]"]) -> None:
        self.master = master
        self.workers = workers

    def executors(self) -> list[psutil.Process]:
        """The JVMs that run tasks now."""
        children = [child for worker in self.workers for child in psutil.Process(worker.pid).children()]
        return [child for child in children if child.name() == "java"]


@contextmanager
def open_cluster(place: Path, python: Path, workers: int = 2) -> Iterator[Cluster]:
    """A master and workers of one core each on free ports; all end with the block."""
    with ExitStack() as ending:
        said = ending.enter_context(_daemon(place, "master", python, "master.Master", "--port", "0"))[1]
        url = _find(said, r"Starting Spark master at (spark://\S+)")
        each = ("--cores", "1", "--memory", "1g", "--port", "0")
        running = []
        for number in range(workers):
            name = f"worker-{number}"
            work = ("--work-dir", str(place / name))
            started = ending.enter_context(_daemon(place, name, python, "worker.Worker", *each, *work, url))
            _find(started[1], "Successfully registered with master")
            running.append(started[0])
        yield Cluster(url, running)


@contextmanager
def _daemon(
    place: Path, name: str, python: Path, kind: str, *arguments: str
) -> Iterator[tuple["subprocess.Popen[bytes]", Path]]:
    """One of Spark's own processes, and the file of what it says; it is ended with all its children."""
    command = [str(HOME / "bin" / "spark-class"), f"org.apache.spark.deploy.{kind}"]
    where = ["--host", "127.0.0.1", "--webui-port", "0"]
    own = {"SPARK_HOME": str(HOME), "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_DAEMON_MEMORY": "256m"}
    kept = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    said = place / f"{name}.log"
    with said.open("wb") as log:
        process = subprocess.Popen(
            [*command, *where, *arguments],
            env=kept | own | {"PYSPARK_PYTHON": str(python)},
            stdout=log,
            stderr=log,
            cwd=place,
        )
    try:
        yield process, said
    finally:
        children = psutil.Process(process.pid).children(recursive=True) if process.poll() is None else []
        process.terminate()
        try:
            process.wait(120)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        for child in psutil.wait_procs(children, 20)[1]:
            child.kill()


def _find(said: Path, pattern: str) -> str:
    """Wait for a line of the process, and return it."""
    deadline = time.monotonic() + READY_WITHIN
    while (found := re.search(pattern, said.read_text(errors="replace"))) is None:
        assert time.monotonic() < deadline, f"Spark did not become ready:\n{said.read_text(errors='replace')[-3000:]}"
        time.sleep(0.05)
    return found[found.lastindex or 0]
