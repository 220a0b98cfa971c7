"""PySpark in versions that this project does not install: built once, kept in the project's cache.

An environment holds PySpark and pyarrow, and nothing of this project. `python -m benchmarks.peers.spark.environment`
builds all that tests and benchmarks use.
"""

import fcntl
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.peers.process import PeerError

POM = Path(__file__).with_name("pom.xml")
TREE = Path(__file__).parents[3]
CACHE = TREE / ".cache"
LOCKS = TREE / "requirements"  # `make locks`; INSTALL is followed by one of its files
INSTALL = ("install", "--quiet", "--require-hashes", "--requirement")
OLDER = ("4.1.4", "4.2.1")  # than the PySpark that the tests run in, and still to be served
CONNECTOR = ("spark-sql-kafka-0-10_2.13", "spark-token-provider-kafka-0-10_2.13", "kafka-clients", "commons-pool2")


def connector_version() -> str:
    """The version of Spark and of its Kafka connector that pom.xml names."""
    found = ElementTree.parse(POM).getroot().findtext("{*}properties/{*}spark.version")
    assert found, "pom.xml names the version"
    return found


def python(version: str) -> Path:
    """The Python of an environment with this version of PySpark; built the first time, which takes a minute.

    Raises PeerError when it cannot be built, or when there is no Java to run Spark with.
    """
    if shutil.which("java") is None:
        raise PeerError("Java 17 or newer is needed to run Spark: there is no `java` on the path")
    place = CACHE / f"spark-{version}"

    def build() -> None:
        _run([sys.executable, "-m", "venv", str(place)], f"no virtual environment for PySpark {version}")
        wanted = str(LOCKS / f"spark-{version}.txt")
        _run([str(place / "bin" / "pip"), *INSTALL, wanted], f"PySpark {version} cannot be installed")

    _once(place, build)
    return place / "bin" / "python"


def connector_conf() -> dict[str, str]:
    """Settings that put `format("kafka")` into a session of PySpark `connector_version()`; Maven fetches the jars once.

    Raises PeerError when Maven is missing or the artifacts cannot be fetched.
    """
    place = CACHE / f"spark-connector-{connector_version()}"

    def build() -> None:
        maven = shutil.which("mvn")
        if maven is None:
            raise PeerError("Maven is needed to fetch Spark's Kafka connector: there is no `mvn` on the path")
        command = [maven, "-B", "-q", "-f", str(POM), "dependency:copy-dependencies", f"-DoutputDirectory={place}"]
        # Only the four: what else they depend on is a part of PySpark, some of it in another version.
        command += ["-DexcludeTransitive=true", "-DincludeScope=runtime"]
        _run(command, "Spark's Kafka connector cannot be fetched")

    _once(place, build)
    jars = [jar for name in CONNECTOR for jar in place.glob(f"{name}-[0-9]*.jar")]
    return {"spark.jars": ",".join(map(str, jars))}


def _once(place: Path, build: Callable[[], None]) -> None:
    """Only the first caller builds; one that was interrupted halfway is built anew."""
    complete = place / "complete"  # written last
    with _turn(place.name):
        if not complete.exists():
            shutil.rmtree(place, ignore_errors=True)
            build()
            complete.touch()


@contextmanager
def _turn(name: str) -> Iterator[None]:
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _run(command: list[str], failure: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise PeerError(f"{failure}:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")


if __name__ == "__main__":
    try:
        connector_conf()
        for each in (connector_version(), *OLDER):
            python(each)
    except PeerError as error:
        sys.exit(str(error))
