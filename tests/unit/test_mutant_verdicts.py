"""What counts as a mutant that was caught: a test that failed, in a broker that otherwise works."""

import subprocess
from pathlib import Path

import pytest

from faults.mutants import run
from faults.mutants.run import try_mutant
from faults.mutants.table import Mutant

MUTANT = Mutant("all is broken", ("test_it.py",))


@pytest.mark.parametrize(
    ("alive", "tests", "caught", "why"),
    [
        ((0, ""), (1, "FAILED test_it.py::test_a[1 MB] - lost 3\n"), True, "test_it.py::test_a[1 MB] - lost 3"),
        ((0, ""), (0, ""), False, "SURVIVED test_it.py"),
        ((0, ""), (2, "error"), False, "pytest ended with 2"),
        ((0, ""), None, False, "took more than"),
        ((1, "no Redis"), (1, "FAILED test_it.py::test_a\n"), False, "takes no record:\nno Redis"),
        (None, (1, "FAILED test_it.py::test_a\n"), False, "took more than"),
    ],
)
def test_verdicts(
    monkeypatch: pytest.MonkeyPatch,
    alive: tuple[int, str] | None,
    tests: tuple[int, str] | None,
    caught: bool,
    why: str,
) -> None:
    def run_group(command: list[str], _place: Path, within: float, _environment: object) -> tuple[int, str]:
        found = tests if "pytest" in command else alive
        if found is None:
            raise subprocess.TimeoutExpired(command, within)
        return found

    monkeypatch.setattr(run, "run_group", run_group)
    monkeypatch.setattr(run, "apply_patch", lambda *_: "")
    verdict, said = try_mutant("all", MUTANT, Path("nowhere"))
    assert (verdict, why in said) == (caught, True), said
