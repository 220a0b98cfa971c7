"""docs/reliability.md, drawn from what the rounds have counted, never by hand."""

import hashlib
import json
import re
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from faults.results import ROOT, Result
from faults.table import FAULTS

PAGE = ROOT / "docs" / "reliability.md"
NOTHING = "\N{EM DASH}"
_HEAD = f"""# What faults do to the broker

Drawn by `make faults` from what its tests counted; do not edit. In each row a fault is made to happen, again and
again, to real processes, and what clients sent and saw is held against what is there afterwards
(`tests/history_rules.py`). `tests/faults/table.py` says which tests make a row.

- **cases**: tests passed in all rounds, failed, skipped.
- **acknowledged**: records that a producer was told to be stored. **lost**: those of them that were gone. Where a
  single copy of the records was destroyed that has to be told: **told** is how many of the lost the broker named.
- **doubled**: records of idempotent producers that stood there twice. **disordered**: places where such a producer's
  records, or offsets, did not rise.
- **longest wait**: seconds in which a partition was written to, and nothing in it acknowledged. In rows measured before
  2026-11-29: between two acknowledgements, of whichever producer.
- **descriptors**, **threads**: of the broker whose number of descriptors grew most, when it was ready and when it was
  told to stop or was killed; clients may still have been connected. Tasks inside the process are not counted.
- **measured**: the day of the last round (UTC), and the commit of the product. A row that was not run since keeps its
  figures, unless it has other tests now.
- {NOTHING}: these tests do not count it. They look at answers, and fail where one is wrong.

"""
_COLUMNS = (
    *("", "fault", "where", "rounds", "cases", "acknowledged", "lost", "told", "doubled", "disordered"),
    *("longest wait", "descriptors", "threads", "measured"),
)
_KEY = 3  # cells before the figures
_MEASURED = re.compile(r"^\| F.*`[0-9a-f]+` \|$", re.MULTILINE)
_TESTS = "The tests of each row that has figures, for the next drawing: figures of other tests are not kept."
_MARK = re.compile(r"^(F\d\d) (.+) ([0-9a-f]{12})$", re.MULTILINE)
_DEFINED = re.compile(r"^(?:async )?def (test_\w+)", re.MULTILINE)


def read_counts(file: Path) -> list[dict[str, Any]]:
    """The lines that the tests have written; none if they wrote none. One that was torn does not count."""
    found = []
    for line in file.read_text().splitlines() if file.exists() else ():
        try:
            found.append(json.loads(line))
        except json.JSONDecodeError:
            continue
    return found


def draw(results: Iterable[Result], before: str = "") -> str:
    """The page. `before`: the page as it was, whose figures stay in rows of which some test was not run."""
    by_test: defaultdict[str, list[Result]] = defaultdict(list)
    for result in results:
        by_test[result.test].append(result)
    former = _read_rows(before)
    rows = [_row(*_COLUMNS), _row(*("---",) * 4, *("--:",) * (len(_COLUMNS) - 4))]
    marks = [_TESTS]
    for number, fault in FAULTS.items():
        for place, tests in fault.tests.items():
            found, mark = [by_test[test] for test in tests], f"{number} {place} {identify(tests)}"
            figures = former.get(mark) if not all(found) else None
            rows.append(_row(number, fault.done, place, *(figures or [*summarize(found), _measured(found)])))
            if figures or any(found):
                marks.append(mark)
        if not fault.tests:
            rows.append(_row(number, fault.done, *(NOTHING,) * (len(_COLUMNS) - 2)))
    parts = [rows]
    for title, name in (("What the figures mean", "figures"), ("What is not done", "left")):
        words = {number: getattr(fault, name) for number, fault in FAULTS.items()}
        parts += [[f"## {title}"], [f"- {number}: {said}." for number, said in words.items() if said]]
    return _HEAD + "\n\n".join("\n".join(part) for part in [*parts, ["<!--", *marks, "-->"]]) + "\n"


def identify(tests: Iterable[str], root: Path = ROOT) -> str:
    """What a row's tests are, by their names: it changes as soon as one is added, renamed or taken away."""
    names: list[str] = []
    for test in tests:
        place = root / test
        for file in [place] if place.is_file() else sorted(place.rglob("test_*.py")):
            names += [str(file.relative_to(root)), *_DEFINED.findall(file.read_text())]
        names.append(test)
    return hashlib.sha256("\n".join(names).encode()).hexdigest()[:12]


def _read_rows(page: str) -> dict[str, list[str]]:
    """The figures of each row of a page that has some, by the mark of its tests."""
    marks = {match.group(1, 2): match[0] for match in _MARK.finditer(page)}
    found = {}
    for row in _MEASURED.findall(page):
        cells = [cell.strip() for cell in row.strip("|").split("|")]
        if mark := marks.get((cells[0], cells[_KEY - 1])):
            found[mark] = cells[_KEY:]
    return found


def _measured(tests: list[list[Result]]) -> str:
    """The day and the commit of a row's last result."""
    results = sorted((result for found in tests for result in found), key=lambda result: result.began)
    return f"{results[-1].began.partition(' ')[0]}, `{results[-1].product}`" if results else NOTHING


def summarize(tests: list[list[Result]]) -> list[str]:
    """The cells of a row, from rounds on; `tests`: the results of each test of the row."""
    found = [result for results in tests for result in results]
    counts = [each for result in found for each in result.counts]
    failed, skipped = sum(len(result.failed) for result in found), sum(result.skipped for result in found)
    cases = str(sum(result.passed for result in found))
    cases += f", {failed} failed" * (failed > 0) + f", {skipped} skipped" * (skipped > 0)
    rounds = min(len({result.round for result in results}) for results in tests)
    totals = [_total(counts, name) for name in ("acknowledged", "lost", "told", "doubled", "disordered")]
    waits = [each["wait"] for each in counts if "wait" in each]
    longest = f"{max(waits):.1f}" if waits else NOTHING
    return [str(rounds), cases if found else NOTHING, *totals, longest, *_growth(counts)]


def _total(counts: list[dict[str, Any]], name: str) -> str:
    """The sum of what was counted under this name."""
    found = [each[name] for each in counts if name in each]
    return f"{sum(found):,}" if found else NOTHING


def _growth(counts: list[dict[str, Any]]) -> tuple[str, str]:
    """Descriptors and threads at the beginning and end of the process whose descriptors grew most."""
    lives: defaultdict[tuple[str, int], dict[str, int]] = defaultdict(dict)
    for each in counts:
        if "pid" in each:
            lives[each["test"], each["pid"]] |= each
    whole = [life for life in lives.values() if "files_at_start" in life and "files_at_end" in life]
    if not whole:
        return NOTHING, NOTHING
    most = max(whole, key=lambda life: life["files_at_end"] - life["files_at_start"])
    descriptors, threads = (f"{most[f'{what}_at_start']} → {most[f'{what}_at_end']}" for what in ("files", "threads"))
    return descriptors, threads


def _row(*cells: str) -> str:
    return "| " + " | ".join(cells) + " |"
