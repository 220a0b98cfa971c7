"""Where and with what a result was measured; nothing that names a person, a host or a path."""

import platform
import re
import subprocess
from importlib.metadata import version
from pathlib import Path

from benchmarks.peers import redis
from benchmarks.peers.kafka import jars


def describe(kafka: bool, redis_server: str) -> dict[str, str | int | float]:
    """Processor, memory, kernel and versions: of Kafka and of this program of Redis if they take part."""
    cpu = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    memory = re.search(r"MemTotal:\s*(\d+)", Path("/proc/meminfo").read_text())
    changed = "+" if _git("status", "--porcelain", "korvet_fast", "rust") else ""
    return {
        "cpu": cpu[1] if cpu else platform.machine(),
        "cpus": Path("/proc/cpuinfo").read_text().count("processor\t"),
        "memory_gb": round(int(memory[1]) / 1e6, 1) if memory else 0,
        "kernel": platform.release().split("-")[0],
        "python": platform.python_version(),
        "korvet-fast": version("korvet-fast"),
        "uvloop": version("uvloop"),
        "commit": _git("rev-parse", "--short", "HEAD") + changed,
        **(_kafka() if kafka else {}),
        **({"redis": redis.version(redis_server)} if redis_server else {}),
    }


def _kafka() -> dict[str, str]:
    java = subprocess.run([jars.java(), "-version"], capture_output=True, text=True, check=True).stderr
    return {"kafka": jars.version(), "java": (re.search(r'"(.*)"', java) or ["", "unknown"])[1]}


def _git(*arguments: str) -> str:
    command = ["git", "-C", str(Path(__file__).parent.parent), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
