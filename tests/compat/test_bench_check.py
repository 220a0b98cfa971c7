"""`make bench-check`, in a repository of its own made of this tree: what became slower is found, and nothing else.

The extension is the one that is built here, for both sides: nothing of the Rust differs.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from requirement import require

ROOT = Path(__file__).parents[2]
RUNS = int(os.environ.get("KORVET_TEST_CHECKS", "3"))  # of an unchanged tree
NATIVE = "korvet_fast/_native.abi3.so"
HEARTBEAT = "korvet_fast/wire/kafka/api/heartbeat.py"
SLOWER = "    sum(range(100))\n"


class Repository:
    """This tree as the only commit of a repository."""

    def __init__(self, place: Path) -> None:
        self.place = place
        listed = self._run("git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard")
        for name in listed.stdout.split("\0"):
            if name and (ROOT / name).exists():
                (place / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(ROOT / name, place / name)
        shutil.copy(ROOT / NATIVE, place / NATIVE)
        self._run("git", "init", "--quiet", "--initial-branch=work", cwd=place)
        self.commit("all of it")

    def commit(self, what: str) -> None:
        self._run("git", "add", "--all", cwd=self.place)
        who = ("-c", "user.name=test", "-c", "user.email=test@example.org", "-c", "commit.gpgsign=false")
        self._run("git", *who, "commit", "--quiet", "-m", what, cwd=self.place)

    def slow_down(self, file: str, line: str) -> None:
        """Put useless work in front of this line."""
        path = self.place / file
        text = path.read_text()
        assert text.count(line) == 1
        path.write_text(text.replace(line, SLOWER + line))

    def restore(self) -> None:
        self._run("git", "checkout", "--quiet", ".", cwd=self.place)

    def check(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "benchmarks.check", *words],
            cwd=self.place,
            env={**os.environ, "PYTHONPATH": ""},
            capture_output=True,
            text=True,
            check=False,
        )

    @staticmethod
    def _run(*command: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
        return subprocess.run(command, cwd=cwd, check=True, capture_output=True, text=True)


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Repository:
    for tool in ("valgrind", "git", "cc"):
        require(tool)
    return Repository(tmp_path_factory.mktemp("repository"))


@pytest.mark.timeout(300)
def test_what_became_slower_is_named_and_only_that(repository: Repository) -> None:
    alone = repository.check("Heartbeat")
    assert alone.returncode == 1
    assert "there is no commit before this one" in alone.stderr

    repository.slow_down(HEARTBEAT, "    fault = session.broker.groups.heartbeat(\n")
    uncommitted = repository.check("Heartbeat", "check, 100", "Metadata, one")
    assert (uncommitted.returncode, "all of it" in uncommitted.stdout) == (1, True), uncommitted.stderr
    (line,) = uncommitted.stderr.splitlines()
    assert line.startswith("Heartbeat takes ") and line.endswith(" % more instructions than before")

    repository.commit("slower")
    committed = repository.check("Heartbeat")
    assert (committed.returncode, "all of it" in committed.stdout) == (1, True), committed.stderr

    quicker = repository.check("--base", "HEAD~1", "--percent", "1000", "Heartbeat")
    assert quicker.returncode == 0, quicker.stderr


@pytest.mark.timeout(600)
def test_an_unchanged_tree_passes_again_and_again(repository: Repository) -> None:
    for _ in range(RUNS):
        ran = repository.check("--base", "HEAD", "check, 100", "Schema.decode", "Heartbeat", "Produce 16")
        assert ran.returncode == 0, ran.stdout + ran.stderr


def test_a_word_that_nothing_is_called_is_refused(repository: Repository) -> None:
    ran = repository.check("nosuchcall")
    assert (ran.returncode, "nothing is called nosuchcall" in ran.stderr) == (2, True)
