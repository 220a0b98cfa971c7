"""Tests reach the product by its public names: few use a name that begins with an underscore, which may go any day."""

import ast
from collections.abc import Iterator
from pathlib import Path

TESTS = Path(__file__).parents[1]
MOST = 0.05  # of all test functions
OF_OTHERS = {"_native", "_replace", "_asdict", "_fields"}  # the extension, and public methods of named tuples


def find_tests(text: str) -> Iterator[tuple[str, bool]]:
    """The test functions of a file, and whether each uses a private name: imported, or of an object but its own."""
    tree = ast.parse(text)
    imported = {
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("korvet_fast")
        for alias in node.names
        if _is_private(alias.name)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test"):
            yield node.name, any(_uses_private(each, imported) for each in ast.walk(node))


def _is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__") and name not in OF_OTHERS


def _uses_private(node: ast.AST, imported: set[str]) -> bool:
    if isinstance(node, ast.Attribute):
        own = isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")
        return _is_private(node.attr) and not own
    return isinstance(node, ast.Name) and node.id in imported


def test_finding_6_9_few_tests_use_private_names() -> None:
    found = [test for file in TESTS.rglob("test_*.py") for test in find_tests(file.read_text())]
    private = [name for name, uses in found if uses]
    assert len(private) <= MOST * len(found), f"{len(private)} of {len(found)}: {private}"


def test_private_names_are_found() -> None:
    text = """
from korvet_fast.core.broker import _SKIPPED_EPOCHS, Broker
def test_one(): assert _SKIPPED_EPOCHS
def test_two(): Broker._clean
def test_three(self): self._place, Broker.open, row._replace()
"""
    assert list(find_tests(text)) == [("test_one", True), ("test_two", True), ("test_three", False)]
