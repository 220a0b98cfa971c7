"""Before a mutant is said to be caught, a broker with it has to take records: what does not start proves nothing."""

from pathlib import Path

import pytest

from faults.mutants.run import check_alive, copy_tree
from requirement import require


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    require("git")
    place = tmp_path_factory.mktemp("tree")
    copy_tree(place)
    return place


def test_a_broker_that_takes_records_is_alive(tree: Path) -> None:
    assert check_alive(tree) == ""


def test_a_broker_that_does_not_start_is_not(tree: Path) -> None:
    main = tree / "korvet_fast" / "__main__.py"
    kept = main.read_text()
    main.write_text("raise SystemExit('broken on purpose')\n")
    try:
        assert "broken on purpose" in check_alive(tree)
    finally:
        main.write_text(kept)
