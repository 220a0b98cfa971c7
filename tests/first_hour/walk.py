"""python -m first_hour.walk WHEEL REQUIREMENTS: types `session.py` where nothing of this project is, but the wheel.

A directory of its own has the virtual environment, the home and the data. Prints each step, and the output of those
that went another way; exit status 1 if one did.
"""

import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

from rich.console import Console

from first_hour.session import STEPS, Step
from redis_server import PROGRAMS, RedisServer, find_program, free_port

NEVER = r"Traceback|[a-z]\.\.$"  # two full stops
PATIENCE = "100"  # seconds for one command; `timeout` ends those that it started, too


def install(place: Path, wheel: Path, requirements: Path) -> Path:
    """A virtual environment with the wheel and what it needs; gives the directory of its programs."""
    subprocess.run([sys.executable, "-m", "venv", place / "venv"], check=True)
    programs = place / "venv" / "bin"
    pip = [programs / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, "--require-hashes", "--requirement", requirements], check=True)
    subprocess.run([*pip, "--no-index", "--no-deps", wheel], check=True)
    return programs


def differences(step: Step, status: int, printed: str) -> list[str]:
    """What a step did that it should not have, one sentence each."""
    found = [] if status == step.status else [f"exit status {status}, not {step.status}"]
    found += [f"did not print {words!r}" for words in step.shown if not re.search(words, printed, re.MULTILINE)]
    unwanted = re.search(f"{NEVER}|{step.never}" if step.never else NEVER, printed, re.MULTILINE)
    return [*found, f"printed {unwanted[0]!r}"] if unwanted else found


def type_in(command: str, place: Path, environment: Mapping[str, str]) -> tuple[int, str]:
    """Exit status and output of a command."""
    done = subprocess.run(
        ["timeout", PATIENCE, "bash", "-c", command],
        cwd=place,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    return done.returncode, done.stdout


def walk(place: Path, environment: dict[str, str], console: Console) -> int:
    """Type everything beside a broker; gives how many steps went another way."""
    port = environment["PORT"]
    with (place / "broker.log").open("wb") as log:
        serve = ["korvet-fast", "serve", "--listen", f"kafka://127.0.0.1:{port}"]
        broker = subprocess.Popen(["env", *serve], cwd=place, env=environment, stdout=log, stderr=log)
    try:
        while b"ready kafka" not in (place / "broker.log").read_bytes():
            if broker.poll() is not None:
                raise SystemExit((place / "broker.log").read_text())
            time.sleep(0.05)
        return sum(_take(step, place, environment, console) for step in STEPS)
    finally:
        broker.terminate()
        broker.wait(60)


def _take(step: Step, place: Path, environment: Mapping[str, str], console: Console) -> bool:
    begun = time.monotonic()
    status, printed = type_in(step.command, place, environment)
    wrong = differences(step, status, printed)
    mark = "[red]no[/]" if wrong else "[green]ok[/]"
    console.print(f"{mark}  {step.what:36} {time.monotonic() - begun:6.1f} s")
    for sentence in wrong:
        console.print(f"    {sentence}", markup=False)
    if wrong:
        console.print(step.command, printed, sep="\n", markup=False, highlight=False, emoji=False)
    return bool(wrong)


def main() -> None:
    wheel, requirements = (Path(given).resolve() for given in sys.argv[1:3])
    console = Console(width=100)
    with tempfile.TemporaryDirectory(prefix="first-hour-") as directory:
        place = Path(directory)
        console.print(f"installing {wheel.name} in {place}")
        programs = install(place, wheel, requirements)
        port = free_port()
        environment = {
            "PATH": f"{programs}:{os.defpath}:/usr/local/bin",
            "HOME": directory,
            "PORT": str(port),
            "OTHER_PORT": str(free_port()),
            "KORVET_BOOTSTRAP": f"127.0.0.1:{port}",
        }
        with RedisServer(find_program(PROGRAMS[0]), place / "redis") as redis:
            environment["REDIS"] = str(redis.port)
            wrong = walk(place, environment, console)
    console.print(f"{len(STEPS)} steps, {wrong} went another way")
    raise SystemExit(bool(wrong))


if __name__ == "__main__":
    main()
