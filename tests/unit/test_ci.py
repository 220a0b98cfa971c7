"""`.ci/run` and a test that fails only sometimes, with `make test` replaced by pytest on one made here.

And the targets of `.ci/run`: they run every test file, none of them twice.
"""

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

# Three Python processes start one after the other, each beside all that `make test` runs at this time.
pytestmark = pytest.mark.timeout(300)

ROOT = Path(__file__).parents[2]
CI = ROOT / ".ci" / "run"
# Of pytest; all but test-tools are in CI.
TARGETS = (
    "checks",
    "test-python",
    "test-fuzz-live",
    "test-faults",
    "test-clients",
    "test-spark",
    "test-legacy",
    "test-tools",
    "test-bench",
)
NOT_IN_CI = {"tests/abuse/test_abuse.py"}  # it judges how long others wait, on a machine that does nothing else

# Beside five others and a compiler, each plugin that is imported for nothing costs seconds.
NO_OTHERS = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}

FLAKY = """
import os, pathlib, random, signal

def test_sometimes():
    before = pathlib.Path(__file__).with_name("was-here")
    if before.exists():
        return
    before.touch()
    seed = random.randrange(2**32)
    print(f"seed {{seed}}")
    {fault}
"""


def run_ci(directory: Path, fault: str) -> "subprocess.CompletedProcess[str]":
    """`.ci/run` where `make test` is one pytest that runs its tests in other processes, as the real one does."""
    (directory / "test_flaky.py").write_text(FLAKY.format(fault=fault))
    make = directory / "make"
    options = "-p xdist -p no:cacheprovider -n 1 --dist worksteal --rootdir ."
    pytest_there = f'cd "{directory}" && exec "{sys.executable}" -m pytest {options} test_flaky.py'
    make.write_text(f'#!/bin/sh\necho "make $*"\nif [ "$1" != test ]; then exit 0; fi\n{pytest_there}\n')
    make.chmod(0o755)
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    path = f"{directory}:{os.environ['PATH']}"
    environment = kept | NO_OTHERS | {"PATH": path}
    return subprocess.run([CI], capture_output=True, text=True, env=environment)


@pytest.mark.parametrize(
    ("fault", "shown"),
    [
        ("assert seed < 0, 'a rare loss'", ["AssertionError: a rare loss", "assert seed < 0", "seed "]),
        ("os.kill(os.getpid(), signal.SIGKILL)", ["crashed while running", "test_sometimes"]),
    ],
    ids=["fails", "crashes"],
)
def test_finding_6_2_a_test_that_fails_only_the_first_time_fails_the_run(
    tmp_path: Path, fault: str, shown: list[str]
) -> None:
    done = run_ci(tmp_path, fault)
    assert done.returncode != 0, done.stdout
    assert (tmp_path / "was-here").exists()
    for words in shown:
        assert words in done.stdout
    assert "1 failed" in done.stdout


def test_tests_that_pass_pass_the_run(tmp_path: Path) -> None:
    done = run_ci(tmp_path, "pass")
    assert done.returncode == 0, done.stdout
    assert "1 passed" in done.stdout
    asked = re.findall("^make (.+)$", done.stdout, re.MULTILINE)
    tests = ["test", "test-faults", "test-clients", "test-spark", "test-legacy", "test-bench"]
    assert asked == [*tests, "replication-rounds ROUNDS=10", "bench-check"]
    assert re.match(r"KORVET_TEST_HYPOTHESIS_SEED=\d+\n", done.stdout)


EXAMPLES = """
from hypothesis import given, strategies as st
from twin.profile import examples

@examples(5)
@given(st.binary(max_size=20))
def test_it(data):
    print(data)
"""


@pytest.fixture
def draw(tmp_path: Path) -> Callable[[str | None], str]:
    """The examples that a test gets with a seed, or with none."""
    (tmp_path / "test_examples.py").write_text(EXAMPLES)
    (tmp_path / "conftest.py").write_text((ROOT / "tests" / "conftest.py").read_text())

    def run(seed: str | None) -> str:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "KORVET_TEST"))}
        chosen = {} if seed is None else {"KORVET_TEST_HYPOTHESIS_SEED": seed}
        options = ["-q", "-s", "-p", "no:cacheprovider", "-p", "_hypothesis_pytestplugin", "--rootdir", str(tmp_path)]
        command = [sys.executable, "-m", "pytest", *options]
        environment = kept | chosen | NO_OTHERS | {"PYTHONPATH": f"{ROOT / 'tests'}:{ROOT / 'python'}:{ROOT}"}
        done = subprocess.run(
            [*command, "test_examples.py"], cwd=tmp_path, capture_output=True, text=True, env=environment, check=True
        )
        return "".join(line for line in done.stdout.splitlines() if line.startswith(("b'", 'b"')))

    return run


def test_finding_6_6_examples_follow_from_the_seed(draw: Callable[[str | None], str]) -> None:
    assert draw("1") == draw("1") != draw("2")
    assert draw(None) == draw(None)


def test_every_test_file_is_run_by_one_target() -> None:
    """A file of two targets would run twice, and one of none never."""
    tests = {path.relative_to(ROOT).as_posix() for path in (ROOT / "tests").rglob("test_*.py")}
    runs = {target: chosen(target, tests) for target in TARGETS}
    found = {file: [target for target, files in runs.items() if file in files] for file in tests}
    wrong = {file: targets for file, targets in found.items() if len(targets) != (file not in NOT_IN_CI)}
    assert wrong == {}


def chosen(target: str, tests: set[str]) -> set[str]:
    """The test files of a target, by the command that make would run."""
    done = subprocess.run(["make", "--dry-run", target], cwd=ROOT, capture_output=True, text=True, check=True)
    lines = [line for line in done.stdout.splitlines() if " -m pytest " in line]
    (line,) = [line for line in lines if "--collect-only" not in line]
    words = line.split()
    ignored = [word.removeprefix("--ignore=") for word in words if word.startswith("--ignore=")]
    given = [word for word in words if word.startswith("tests/")] or ["tests"]

    def below(file: str, places: list[str]) -> bool:
        return any(file == place or file.startswith(f"{place}/") for place in places)

    return {file for file in tests if below(file, given) and not below(file, ignored)}
