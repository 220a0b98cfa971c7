"""What tests have counted, for who collects it: lines of JSON in the file that KORVET_TEST_COUNTS names."""

import json
import os
from collections.abc import Collection, Hashable, Iterable, Sequence
from itertools import pairwise
from pathlib import Path

FILE = "KORVET_TEST_COUNTS"


def note(**figures: float) -> None:
    """Append the figures, with the name of the test that runs. Nothing without the variable."""
    if path := os.environ.get(FILE):
        test = os.environ.get("PYTEST_CURRENT_TEST", "").partition(" ")[0]
        with Path(path).open("a") as file:
            file.write(json.dumps({"test": test, **figures}) + "\n")


def note_numbers(acknowledged: Collection[int], found: Sequence[int]) -> None:
    """The figures of one producer that numbers its records. `found`: what is there, in log order."""
    note(
        acknowledged=len(acknowledged),
        lost=len(set(acknowledged) - set(found)),
        doubled=len(found) - len(set(found)),
        disordered=sum(second < first for first, second in pairwise(found)),
    )


def note_values(acknowledged: Sequence[Hashable], found: Iterable[Hashable]) -> None:
    """The same of records that differ, in the order in which they were acknowledged; what else is there is left out."""
    numbers = {value: number for number, value in enumerate(acknowledged)}
    note_numbers(numbers.values(), [numbers[value] for value in found if value in numbers])


def note_process(pid: int, moment: str) -> None:
    """How many descriptors and threads a process has (`moment`: "start" or "end"); nothing where it has ended."""
    if FILE not in os.environ:
        return
    try:
        found = {
            what: len(list(Path(f"/proc/{pid}/{place}").iterdir()))
            for what, place in (("files", "fd"), ("threads", "task"))
        }
    except OSError:
        return  # it has died by itself, which the test knows
    note(pid=pid, **{f"{what}_at_{moment}": number for what, number in found.items()})
