"""tests/unit has the folders of the package: whoever knows where code is knows where its tests are."""

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE, UNIT = ROOT / "korvet_fast", ROOT / "tests" / "unit"

# Folders of the package that have no tests of their own here, and the tests of them: over sockets, or over real stores.
ELSEWHERE = {
    "core/groups/membership": "tests/protocol/test_groups.py",
    "store/embedded": "tests/store",
    "store/redis/log": "tests/store/redis_log",
    "store/redis/stream": "tests/store/redis_log",
    "wire/kafka/api": "tests/protocol",
    "wire/legacy/api": "tests/protocol/test_legacy.py",
    "wire/replica/api": "tests/faults/replication",
    "wire/text/api": "tests/protocol/test_text.py",
}
# Folders here that the package does not have, and the code that they test.
OF_OTHERS = {"benchmarks": "benchmarks"}


def folders(top: Path, pattern: str) -> set[str]:
    """The folders below `top` that have such files in them or further down, relative to it."""
    return {str(folder) for file in top.rglob(pattern) for folder in file.relative_to(top).parents} - {"."}


def test_each_folder_of_the_package_has_its_tests() -> None:
    missing = folders(PACKAGE, "*.py") - folders(UNIT, "test_*.py")
    assert missing == ELSEWHERE.keys()


def test_each_folder_of_tests_is_one_of_the_package() -> None:
    assert folders(UNIT, "test_*.py") - folders(PACKAGE, "*.py") == OF_OTHERS.keys()


@pytest.mark.parametrize("place", sorted({*ELSEWHERE.values(), *OF_OTHERS.values()}))
def test_what_is_named_instead_is_there(place: str) -> None:
    path = ROOT / place
    assert path.is_file() or any(path.rglob("*.py"))
