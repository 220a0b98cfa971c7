"""Breaks the product in one place after the other and has a fault test notice: `make mutants`.

Each patch goes into a copy of the tree, the tests named for it run there, and the patch goes out again. Prints which
test has caught it, and what that said. Ends badly if a patch does not apply, if nothing catches it, if a broker with it
takes no record at all (whatever fails then says nothing), or if a test fails without any patch.
"""

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from faults.mutants.table import MUTANTS, Mutant
from faults.process_group import run_group

ROOT = Path(__file__).parents[3]
PATCHES = Path(__file__).parent
_FAILED = re.compile(r"^FAILED (.+)", re.MULTILINE)
_WITHIN = 900.0  # seconds that the tests of a patch may take
_ALL_WITHIN = 7200.0  # seconds that all tests may take, without a patch
_ENVIRONMENT = {"KORVET_TEST_REQUIRE": "all", "COLUMNS": "300"}  # the second: pytest cuts what it says


def copy_tree(place: Path) -> None:
    """What git knows, as it is now, and the extension that was built."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True).stdout
    files = [ROOT / name.decode() for name in listed.split(b"\0") if name]
    for file in [*files, *(ROOT / "korvet_fast").glob("_native*.so")]:
        if file.is_file():
            copied = place / file.relative_to(ROOT)
            copied.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(file, copied)


def apply_patch(name: str, place: Path, *options: str) -> str:
    """Returns why the patch cannot be applied; "" if it can."""
    command = ["git", "apply", *options, str(PATCHES / f"{name}.patch")]
    # Nothing above the place is asked whether it is a repository: there a patch would be applied to nothing, silently.
    environment = {"PATH": "/usr/bin:/bin:/usr/local/bin", "GIT_CEILING_DIRECTORIES": str(place.parent)}
    return subprocess.run(command, cwd=place, capture_output=True, text=True, env=environment).stderr


def run_tests(place: Path, tests: Sequence[str], *options: str, within: float = _WITHIN) -> tuple[int, str]:
    """pytest's exit code, and what it said; -1 if it took too long."""
    command = ["-m", "pytest", "-q", "-rf", "-p", "no:benchmark", "--tb=no", *options, *tests]
    return _run(place, command, within, _ENVIRONMENT)


def check_alive(place: Path) -> str:
    """Why a broker of this tree takes no record, as far as is known; "" if it does."""
    paths = os.pathsep.join((str(place), str(place / "tests")))
    code, said = _run(place, ["-m", "faults.mutants.alive"], _WITHIN, _ENVIRONMENT | {"PYTHONPATH": paths})
    return said or f"it ended with {code}" if code else ""


def _run(place: Path, command: Sequence[str], within: float, environment: Mapping[str, str]) -> tuple[int, str]:
    try:
        return run_group([sys.executable, *command], place, within, environment)
    except subprocess.TimeoutExpired:
        return -1, f"{' '.join(command)} took more than {within:.0f} s"


def try_mutant(name: str, mutant: Mutant, place: Path) -> tuple[bool, str]:
    """Whether a test has caught it, and the test, or why none has."""
    if why := apply_patch(name, place):
        return False, f"the patch does not apply: {why.strip()}"
    try:
        if why := check_alive(place):
            return False, f"a broker takes no record:\n{why[-2000:]}"
        code, said = run_tests(place, mutant.tests, "--maxfail=1")
    finally:
        assert apply_patch(name, place, "--reverse") == ""
    failed = _FAILED.search(said)
    if code == 1 and failed is not None:
        return True, failed.group(1)
    if code == 0:
        return False, f"SURVIVED {' '.join(mutant.tests)}"
    return False, f"the tests did not run to their end (pytest ended with {code}):\n{said[-2000:]}"


def main(chosen: Sequence[str]) -> int:
    """Returns the exit code. `chosen`: names of patches; none: all of them."""
    names = chosen or list(MUTANTS)
    if unknown := sorted(set(names) - MUTANTS.keys()):
        print(f"there is no mutant {', '.join(unknown)}; the table is tests/faults/mutants/table.py")
        return 2
    bad = 0
    with tempfile.TemporaryDirectory(prefix="korvet-mutants-") as directory:
        place = Path(directory) / "tree"
        copy_tree(place)
        whole = sorted({test for name in names for test in MUTANTS[name].tests})
        if why := check_alive(place):
            print(f"a broker takes no record without any mutant:\n{why[-4000:]}")
            return 1
        code, said = run_tests(place, whole, "-n", "2", within=_ALL_WITHIN)
        if code:
            print(f"tests fail without any mutant:\n{said[-4000:]}")
            return 1
        for name in names:
            began = time.monotonic()
            caught, what = try_mutant(name, MUTANTS[name], place)
            bad += not caught
            mark = "caught" if caught else "NOT CAUGHT"
            print(f"{mark:10} {name:32} {time.monotonic() - began:4.0f} s  {what}", flush=True)
    print(f"{len(names) - bad} of {len(names)} mutants were caught")
    return 1 if bad else 0


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # so that what runs is ended
    sys.exit(main(sys.argv[1:]))
