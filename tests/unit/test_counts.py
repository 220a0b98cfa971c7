"""What tests count of the records of one producer."""

import json
from pathlib import Path

import pytest

from counts import FILE, note_numbers, note_values


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(FILE, str(tmp_path / "counts"))
    return tmp_path / "counts"


def read(file: Path) -> dict[str, int]:
    """The figures of the last line, without the name of the test."""
    figures: dict[str, int] = json.loads(file.read_text().splitlines()[-1])
    return {name: number for name, number in figures.items() if name != "test"}


def test_numbers(file: Path) -> None:
    note_numbers({0, 1, 2, 3}, [0, 2, 1, 1, 9])
    assert read(file) == {"acknowledged": 4, "lost": 1, "doubled": 1, "disordered": 1}


@pytest.mark.parametrize(
    ("found", "lost", "doubled", "disordered"),
    [
        ([b"c", b"a", b"b"], 0, 0, 0),
        ([b"c", b"of another", b"b"], 1, 0, 0),
        ([b"c", b"a", b"c", b"b"], 0, 1, 1),
        ([b"a", b"c", b"b"], 0, 0, 1),
    ],
)
def test_values_in_the_order_of_their_acknowledgements(
    file: Path, found: list[bytes], lost: int, doubled: int, disordered: int
) -> None:
    note_values([b"c", b"a", b"b"], found)
    assert read(file) == {"acknowledged": 3, "lost": lost, "doubled": doubled, "disordered": disordered}
