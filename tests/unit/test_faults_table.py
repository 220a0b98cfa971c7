"""The table of faults: whole, true to the tests, and drawn from what was counted alone."""

import ast
from pathlib import Path

import pytest

from faults.campaign import find_left
from faults.results import Result, find_version, read_results, save
from faults.sheet import NOTHING, PAGE, draw, identify, summarize
from faults.table import FAULTS

ROOT = Path(__file__).parents[2]
NUMBERS = [f"F{number:02}" for number in range(1, 41)]


def test_every_fault_has_tests_or_a_reason() -> None:
    assert sorted(FAULTS) == NUMBERS
    for number, fault in FAULTS.items():
        assert fault.tests or fault.left, number
        assert all(tests for tests in fault.tests.values()), number


@pytest.mark.parametrize("number", [number for number, fault in FAULTS.items() if fault.tests])
def test_what_the_table_names_is_there(number: str) -> None:
    for test in (test for tests in FAULTS[number].tests.values() for test in tests):
        file, _, name = test.partition("::")
        place = ROOT / file
        assert place.exists(), test
        if name:
            tree = ast.parse(place.read_text())
            defined = {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}
            assert name.partition("[")[0] in defined, test


def test_the_page_has_every_row() -> None:
    page = PAGE.read_text()
    rows = [
        tuple(cell.strip() for cell in line.split("|")[1:4]) for line in page.splitlines() if line.startswith("| F")
    ]
    assert rows == [
        (number, fault.done, place) for number, fault in FAULTS.items() for place in fault.tests or (NOTHING,)
    ]


def result(number: int, *counts: dict[str, object], **others: object) -> Result:
    return Result("abc", number, "t", "2026-01-01 00:00", 1.0, counts=list(counts), **others)  # type: ignore[arg-type]


def test_figures_are_sums_and_what_nobody_counted_is_no_zero() -> None:
    ends = [{"test": "t", "pid": 7, "files_at_end": 40, "threads_at_end": 9}]
    begins = [{"test": "t", "pid": 7, "files_at_start": 30, "threads_at_start": 8}]
    one = result(1, {"acknowledged": 1000, "lost": 2, "told": 2, "wait": 1.25}, *begins, *ends, passed=2)
    two = result(2, {"acknowledged": 500, "lost": 0, "told": 0, "wait": 0.5}, passed=1, failed=["that"])
    cells = ["2", "3, 1 failed", "1,500", "2", "2", NOTHING, NOTHING, "1.2", "30 → 40", "8 → 9"]
    assert summarize([[one, two]]) == cells
    assert summarize([[one, two], []]) == ["0", *cells[1:]]
    assert summarize([[]]) == ["0", *[NOTHING] * 9]


def test_what_has_passed_is_not_run_again(tmp_path: Path) -> None:
    tests = {test for _, test in find_left(1, [])}
    assert len(find_left(3, [])) == 3 * len(tests)
    one, two, *_ = sorted(tests)
    file = tmp_path / "results" / "faults.jsonl"
    first = Result("abc", 2, one, "2026-01-01 00:00", 1.0, passed=1, version=find_version(one))
    save(first, file)
    with file.open("a") as lines:
        lines.write('{"product": "ab')  # killed while it wrote
    save(Result("other", 1, one, "2026-01-01 00:00", 1.0, version=find_version(one)), file)
    save(Result("abc", 1, one, "2026-01-01 00:00", 1.0, version="of before"), file)
    failed = Result("abc", 1, two, "2026-01-01 00:00", 1.0, failed=["that"], version=find_version(two))
    save(failed, file)
    found = read_results("abc", file)
    assert found == [first, failed]
    assert set(find_left(3, [])) - set(find_left(3, found)) == {(2, one)}


def test_a_version_is_that_of_the_tests_file(tmp_path: Path) -> None:
    file = tmp_path / "test_it.py"
    seen = set()
    for text in ("one", "other"):
        file.write_text(text)
        seen.add((find_version(str(file)), find_version(str(tmp_path))))
        assert find_version(f"{file}::test_a") == find_version(str(file))
    assert len(seen) == 2


def test_a_row_that_was_not_run_again_keeps_its_figures() -> None:
    tests = FAULTS["F02"].tests["files"]
    first = draw([Result("abc", 1, test, "2026-01-01 00:00", 1.0, passed=7) for test in tests])
    row = next(line for line in first.splitlines() if line.startswith("| F02"))
    assert row.endswith("| 2026-01-01, `abc` |")
    assert f"| {7 * len(tests)} |" in row
    assert row in draw([], first)
    again = draw([Result("def", 2, test, "2026-01-02 00:00", 1.0, passed=9) for test in tests], first)
    assert row not in again
    assert "| 2026-01-02, `def` |" in again


def test_figures_of_other_tests_are_not_kept() -> None:
    tests = FAULTS["F02"].tests["files"]
    page = draw([Result("abc", 1, test, "2026-01-01 00:00", 1.0, passed=7) for test in tests])
    now = f"F02 files {identify(tests)}"
    assert now in page
    assert "`abc`" not in draw([], page.replace(now, f"F02 files {identify(['others.py'])}"))
    assert "`abc`" not in draw([], page.replace(now, ""))


def test_a_row_has_other_tests_once_one_is_added_or_renamed(tmp_path: Path) -> None:
    file = tmp_path / "there" / "test_it.py"
    file.parent.mkdir()
    seen = set()
    for text in ("def test_a(): ...\n", "def test_b(): ...\n", "def test_a(): ...\nasync def test_b(): ...\n"):
        file.write_text(text)
        seen.add((identify(["there"], tmp_path), identify(["there/test_it.py"], tmp_path)))
    assert len({mark for both in seen for mark in both}) == 6
    assert identify(["there", "a"], tmp_path) != identify(["there", "b"], tmp_path)


def test_the_page_says_what_is_drawn_now() -> None:
    assert PAGE.read_text().partition("\n| ")[0] == draw([]).partition("\n| ")[0]


def test_the_page_says_what_figures_mean_and_what_is_not_done() -> None:
    page = draw([])
    for number, fault in FAULTS.items():
        for words in filter(None, (fault.figures, fault.left)):
            assert f"- {number}: {words}.\n" in page


def test_a_page_of_nothing_has_no_figures() -> None:
    rows = [line for line in draw([]).splitlines() if line.startswith("| F")]
    assert all(line.endswith(f"| {NOTHING} |") for line in rows)


def test_some_faults_alone() -> None:
    assert {test for _, test in find_left(1, [], ["F02"])} == set(sum(FAULTS["F02"].tests.values(), ()))
