"""`make bench-check`, in a repository of its own made of this tree: what became slower is found, and nothing else.

The extension is the one that is built here, for both sides where nothing of the Rust differs.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from requirement import require

ROOT = Path(__file__).parents[2]
RUNS = int(os.environ.get("KORVET_TEST_CHECKS", "2"))  # of an unchanged tree
NATIVE = "korvet_fast/_native.abi3.so"
HEARTBEAT = "korvet_fast/wire/kafka/api/heartbeat.py"
SLOWER = "    sum(range(100))\n"
LONG_AGO = "2020-01-01T00:00:00Z"  # older than anything cargo has built


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
        (place / "target").mkdir()
        (place / "target" / "release").symlink_to(ROOT / "target" / "release")  # where other crates are built already

    def commit(self, what: str) -> None:
        self._run("git", "add", "--all", cwd=self.place)
        who = ("-c", "user.name=test", "-c", "user.email=test@example.org", "-c", "commit.gpgsign=false")
        self._run("git", *who, "commit", "--quiet", "-m", what, cwd=self.place)

    def slow_down(self, file: str, line: str, work: str) -> None:
        """Put useless work in front of this line."""
        path = self.place / file
        text = path.read_text()
        assert text.count(line) == 1
        path.write_text(text.replace(line, work + line))

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
        dates = {"GIT_AUTHOR_DATE": LONG_AGO, "GIT_COMMITTER_DATE": LONG_AGO}
        return subprocess.run(command, cwd=cwd, env={**os.environ, **dates}, check=True, capture_output=True, text=True)


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    for tool in ("valgrind", "git", "cc"):
        require(tool)
    return Repository(tmp_path)


@pytest.mark.timeout(900)
def test_what_became_slower_is_named_and_only_that(repository: Repository) -> None:
    alone = repository.check("Heartbeat")
    assert alone.returncode == 1
    assert "there is no commit before this one" in alone.stderr

    repository.slow_down(HEARTBEAT, "    error = session.broker.groups.classic.heartbeat(\n", SLOWER)
    uncommitted = repository.check("Heartbeat", "validate_batch, 100", "Metadata, one")
    assert (uncommitted.returncode, "all of it" in uncommitted.stdout) == (1, True), uncommitted.stderr
    (line,) = uncommitted.stderr.splitlines()
    assert line.startswith("Heartbeat takes ") and line.endswith(" % more instructions than before")

    repository.commit("slower")
    committed = repository.check("--percent", "1000", "Heartbeat")  # with the commit before
    assert (committed.returncode, "all of it" in committed.stdout) == (0, True), committed.stderr
    assert _change(committed.stdout, "Heartbeat") > 3


@pytest.mark.timeout(1800)
def test_an_unchanged_tree_passes_again_and_again(repository: Repository) -> None:
    for _ in range(RUNS):
        ran = repository.check("--base", "HEAD", "validate_batch, 100", "Schema.decode", "Heartbeat", "Produce 16")
        assert ran.returncode == 0, ran.stdout + ran.stderr


@pytest.mark.timeout(900)
def test_a_commit_that_cannot_run_these_benchmarks_is_counted_with_its_own(repository: Repository) -> None:
    (repository.place / "korvet_fast" / "newer.py").write_text("THERE = True\n")
    cases = repository.place / "benchmarks" / "requests" / "cases.py"
    cases.write_text(cases.read_text() + "\nfrom korvet_fast.newer import THERE  # noqa\n")
    ran = repository.check("--base", "HEAD", "Heartbeat")
    assert ran.returncode == 0, ran.stderr
    assert "No module named 'korvet_fast.newer'" in ran.stderr
    assert "it is counted with its own benchmarks" in ran.stderr


@pytest.mark.timeout(1800)
def test_an_extension_of_other_sources_is_built_and_not_taken_for_up_to_date(repository: Repository) -> None:
    require("cargo")
    line = "    verify(header, bytes)?;\n"
    repository.slow_down("rust/codec/src/batch/validate.rs", line, line)
    repository.commit("the checksum twice")
    ran = repository.check("--base", "HEAD", "validate_batch, 100")
    assert ran.returncode == 0, ran.stderr
    assert abs(_change(ran.stdout)) < 1, "nothing of the Rust differs, so it is the same extension"

    shutil.copy(ROOT / "rust/codec/src/batch/validate.rs", repository.place / "rust/codec/src/batch/validate.rs")
    ran = repository.check("--base", "HEAD", "validate_batch, 100")
    assert ran.returncode == 0, ran.stderr
    assert _change(ran.stdout) < -5


def _change(printed: str, name: str = "validate_batch, 100") -> float:
    """Percent."""
    (row,) = (line for line in printed.splitlines() if f" {name} " in line)
    return float(row.split("│")[-2].split()[0])


def test_a_word_that_nothing_is_called_is_refused(repository: Repository) -> None:
    ran = repository.check("--base", "HEAD", "nosuchcall")
    assert (ran.returncode, "nothing is called nosuchcall" in ran.stderr) == (2, True), ran.stderr
