"""Breaks the product in one place after the other and has a fault test notice: `make mutants`.

Each patch goes into a copy of the tree, the tests named for it run there, and the patch goes out again. Prints which
test has caught it. Ends badly if a patch does not apply, if nothing catches it, or if a test fails without any patch.
"""

import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from faults.mutants.table import MUTANTS, Mutant

ROOT = Path(__file__).parents[3]
PATCHES = Path(__file__).parent
_FAILED = re.compile(r"^FAILED (\S+)", re.MULTILINE)
_WITHIN = 900  # seconds that the tests of a patch may take


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


def run_tests(place: Path, tests: Sequence[str], *options: str) -> tuple[int, str]:
    """pytest's exit code, and what it said."""
    command = [sys.executable, "-m", "pytest", "-q", "-rf", "-p", "no:benchmark", "--tb=no", *options, *tests]
    ran = subprocess.run(command, cwd=place, capture_output=True, text=True, timeout=_WITHIN)
    return ran.returncode, ran.stdout + ran.stderr


def try_mutant(name: str, mutant: Mutant, place: Path) -> tuple[bool, str]:
    """Whether a test has caught it, and the test, or why none has."""
    if why := apply_patch(name, place):
        return False, f"the patch does not apply: {why.strip()}"
    try:
        code, said = run_tests(place, mutant.tests, "--maxfail=1")
    finally:
        assert apply_patch(name, place, "--reverse") == ""
    failed = _FAILED.search(said)
    if code == 1 and failed is not None:
        return True, failed.group(1)
    if code == 0:
        return False, f"SURVIVED {' '.join(mutant.tests)}"
    return False, f"the tests did not run (pytest ended with {code}):\n{said[-2000:]}"


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
        code, said = run_tests(place, whole, "-n", "2")
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
    sys.exit(main(sys.argv[1:]))
