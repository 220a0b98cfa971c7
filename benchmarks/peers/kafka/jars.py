"""Apache Kafka's jars, fetched once with Maven into the project's cache; for the broker and the Java tools."""

import shutil
import subprocess
import xml.etree.ElementTree as ElementTree
from pathlib import Path

from benchmarks.peers.process import PeerError

POM = Path(__file__).with_name("pom.xml")
CACHE = Path(__file__).parents[3] / ".cache"


def version() -> str:
    """The Kafka version that pom.xml names."""
    found = ElementTree.parse(POM).getroot().findtext("{*}properties/{*}kafka.version")
    assert found, "pom.xml names the version"
    return found


def java() -> str:
    """The path of `java`. Raises PeerError when there is none."""
    return _tool("java", "Java 17 or newer")


def classpath() -> str:
    """The classpath of the broker, the command-line tools and the clients; fetched with Maven the first time.

    Raises PeerError when Maven or Java is missing or the artifacts cannot be fetched.
    """
    java()
    folder = CACHE / f"kafka-{version()}"
    # Written last: a folder without it was interrupted halfway.
    complete = folder / "complete"
    if not complete.exists():
        command = [_tool("mvn", "Maven"), "-B", "-q", "-f", str(POM), "dependency:copy-dependencies"]
        command += [f"-DoutputDirectory={folder}", "-DincludeScope=runtime"]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            raise PeerError(f"Maven could not fetch Kafka's artifacts:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
        complete.touch()
    return str(folder / "*")


def _tool(name: str, sentence: str) -> str:
    path = shutil.which(name)
    if path is None:
        raise PeerError(f"{sentence} is needed to run Apache Kafka: there is no `{name}` on the path")
    return path
