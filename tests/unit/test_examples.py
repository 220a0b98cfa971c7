"""Each example: a folder that says in a few lines how to run it, is listed, and is run by a test."""

from pathlib import Path

import pytest

from documents import FENCE

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
FOLDERS = sorted(each for each in EXAMPLES.iterdir() if each.is_dir() and each.name != "__pycache__")


def test_there_is_none_outside_of_a_folder() -> None:
    assert {each.name for each in EXAMPLES.iterdir() if each.is_file()} == {"README.md", "__init__.py"}


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_it_says_how_to_run_it_in_a_few_lines(folder: Path) -> None:
    said = (folder / "README.md").read_text(encoding="utf-8")
    assert len(said.splitlines()) <= 16
    assert [language for _, language, _ in FENCE.findall(said)] == ["sh"]
    for file in folder.glob("*.[ps][yh]"):
        assert file.name == "__init__.py" or file.name in said, f"{file.name} is not explained"
    assert f"({folder.name}/README.md)" in (EXAMPLES / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_a_test_runs_it(folder: Path) -> None:
    tests = (ROOT / "tests" / "examples").rglob("test_*.py")
    assert any(folder.name in test.read_text(encoding="utf-8") for test in tests)
