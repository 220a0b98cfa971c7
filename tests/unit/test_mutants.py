"""The patches of `make mutants` apply to the tree as it is, and name tests that there are."""

from pathlib import Path

import pytest

from faults.mutants.run import PATCHES, ROOT, apply_patch
from faults.mutants.table import MUTANTS
from requirement import require


def test_each_patch_has_its_row() -> None:
    assert {file.stem for file in PATCHES.glob("*.patch")} == MUTANTS.keys()


@pytest.mark.parametrize("name", MUTANTS)
def test_a_patch_applies(name: str) -> None:
    require("git")
    assert apply_patch(name, ROOT, "--check") == ""


@pytest.mark.parametrize("name", MUTANTS)
def test_its_tests_are_there(name: str) -> None:
    assert MUTANTS[name].tests
    for test in MUTANTS[name].tests:
        file, _, case = test.partition("::")
        function = case.partition("[")[0]
        assert f"def {function}(" in (ROOT / file).read_text() if function else (ROOT / file).exists()


def test_a_patch_that_does_not_apply_is_noticed(tmp_path: Path) -> None:
    require("git")
    assert "No such file" in apply_patch(next(iter(MUTANTS)), tmp_path, "--check")
