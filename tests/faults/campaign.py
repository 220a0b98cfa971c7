"""Runs the tests of every fault, round after round, and draws the table of what they counted: `make faults`.

A test that has passed in a round is not run again in it, so a run that was stopped goes on; one that has failed is, and
its failure stays in the table until the product or the test is another. Two tests run at a time.
"""

import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor, as_completed
from datetime import UTC, datetime
from pathlib import Path
from xml.etree import ElementTree

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from counts import FILE as COUNTS
from faults.process_group import end_groups, run_group
from faults.results import ROOT, Result, find_product, find_version, read_results, save
from faults.sheet import PAGE, draw, read_counts
from faults.table import FAULTS

WITHIN = 1800  # seconds that one test may take, with all its parameters
_ENVIRONMENT = {
    "KORVET_TEST_ROUNDS": "5",  # replication/test_rounds.py has five kinds of faults
    "KORVET_TEST_REQUIRE": "all",
}
_SEED = 20260101  # of the round 0: every round has another


def run_test(product: str, number: int, test: str) -> Result:
    """One test of the table, once, by a pytest of its own. Never raises for a test that fails."""
    began = time.monotonic()
    result = Result(product, number, test, f"{datetime.now(UTC):%Y-%m-%d %H:%M}", 0.0, version=find_version(test))
    with tempfile.TemporaryDirectory(prefix="korvet-faults-") as directory:
        report, counts = Path(directory) / "report.xml", Path(directory) / "counts"
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:benchmark", "--junit-xml", str(report), test]
        environment = _ENVIRONMENT | {COUNTS: str(counts), "KORVET_TEST_SEED": str(_SEED + number)}
        try:
            code, said = run_group(command, ROOT, WITHIN, environment)
        except subprocess.TimeoutExpired:
            result.failed.append(f"{test} took more than {WITHIN} s")
        else:
            read_report(result, report)
            if code and not result.failed:
                result.failed.append(f"pytest ended with {code}: {said[-1000:]}")
        if not result.passed and not result.failed:
            result.failed.append("no test of it passed")
        result.counts = read_counts(counts)
    result.seconds = round(time.monotonic() - began, 1)
    return result


def read_report(result: Result, report: Path) -> None:
    """Count the cases of pytest's report into the result."""
    if not report.exists():
        result.failed.append("pytest wrote no report")
        return
    for case in ElementTree.parse(report).iter("testcase"):
        kinds = {each.tag for each in case}
        if kinds & {"failure", "error"}:
            result.failed.append(str(case.get("name")))
        elif "skipped" in kinds:
            result.skipped += 1
        else:
            result.passed += 1


def find_left(rounds: int, results: list[Result], faults: Collection[str] = FAULTS) -> list[tuple[int, str]]:
    """What has to be run of these faults: (round, test), the first round first."""
    tests = dict.fromkeys(test for number in faults for row in FAULTS[number].tests.values() for test in row)
    done = {(result.round, result.test) for result in results if not result.failed}
    return [(number, test) for number in range(1, rounds + 1) for test in tests if (number, test) not in done]


def keep(result: Result) -> None:
    """Raises `SystemExit` if it is not sure what was tested."""
    if (product := find_product()) != result.product:
        raise SystemExit(f"the product was {result.product} and is {product} now: begin again, what is saved stays")
    save(result)


def main(rounds: int, faults: Collection[str]) -> int:
    """Returns the exit code: 1 if a test has failed in any round. `faults`: numbers of some; none: all."""
    if unknown := sorted(set(faults) - FAULTS.keys()):
        print(f"there is no fault {', '.join(unknown)}; the table is tests/faults/table.py")
        return 2
    product = find_product()
    results = read_results(product)
    left = find_left(rounds, results, faults or FAULTS)
    print(f"{rounds} rounds of {product}: {len(left)} tests to run, {len(results)} done before")
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    pool = ThreadPoolExecutor(2)
    with Progress(*columns) as bar:
        task = bar.add_task("faults", total=len(left))
        try:
            running = [pool.submit(run_test, product, number, test) for number, test in left]
            for each in as_completed(running):
                result = each.result()
                keep(result)
                bar.update(task, advance=1, description=f"round {result.round}")
                for name in result.failed:
                    bar.console.print(f"round {result.round}: FAILED {result.test}: {name}", markup=False)
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
            end_groups()
    results = read_results(product)
    page = draw(results, PAGE.read_text())
    print(page)
    PAGE.write_text(page)
    return 1 if any(result.failed for result in results) else 0


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # so that what runs is ended
    sys.exit(main(int(sys.argv[1]), sys.argv[2:]))
