"""Files, functions and classes that can be read at one go. Those that are longer have a reason, given here."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "korvet_fast"
FOLDERS = ("benchmarks", "examples", "korvet_fast", "python", "rust", "tests")
STOP = 500  # lines of a file
LINES = 50  # of a function, from `def` to its last line, the docstring included
METHODS = 25  # of a class, properties and `__init__` included
MOST = 10  # exceptions there may be

# File and name -> why it is longer than the others.
EXCEPTIONS = {
    "core/partition/partition.py Partition.append": "one straight way that each batch takes: parts of its own "
    "would be calls that each batch pays for, and would hand most of its values to each other",
}


def find_long(tree: ast.Module) -> Iterator[tuple[str, int]]:
    """Functions and classes of a file beyond the limits: name, as Python writes it, and lines or methods."""
    yield from _find(tree, "")


def _find(node: ast.AST, prefix: str) -> Iterator[tuple[str, int]]:
    for child in ast.iter_child_nodes(node):
        inner = prefix
        if isinstance(child, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            name = prefix + child.name
            inner = f"{name}."
            size, most = _measure(child)
            if size > most:
                yield name, size
        yield from _find(child, inner)


def _measure(node: ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> tuple[int, int]:
    """How large it is, and how large it may be."""
    if isinstance(node, ast.ClassDef):
        return sum(isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef) for part in node.body), METHODS
    assert node.end_lineno is not None
    return node.end_lineno - node.lineno + 1, LINES


def test_no_file_is_long() -> None:
    files = [file for folder in FOLDERS for kind in ("*.py", "*.rs") for file in (ROOT / folder).rglob(kind)]
    long = [str(file.relative_to(ROOT)) for file in files if _count_lines(file) > STOP]
    assert long == []


def _count_lines(file: Path) -> int:
    return len(file.read_text(encoding="utf-8").splitlines())


def test_only_the_exceptions_are_long() -> None:
    long = {
        f"{file.relative_to(PACKAGE)} {name}": size
        for file in PACKAGE.rglob("*.py")
        for name, size in find_long(ast.parse(file.read_text(encoding="utf-8")))
    }
    assert long.keys() - EXCEPTIONS.keys() == set(), f"too long: {long}"
    assert EXCEPTIONS.keys() - long.keys() == set(), "no exceptions any more"


def test_exceptions_are_few_and_have_reasons() -> None:
    assert len(EXCEPTIONS) <= MOST
    assert all(EXCEPTIONS.values())


@pytest.mark.parametrize("kind", ["def", "async def"])
def test_a_long_function_is_found_wherever_it_is(kind: str) -> None:
    def made(lines: int) -> ast.Module:
        body = "            x = 1\n" * (lines - 1)
        return ast.parse(f"class A:\n    class B:\n        {kind} c():\n{body}")

    assert list(find_long(made(LINES))) == []
    assert list(find_long(made(LINES + 1))) == [("A.B.c", LINES + 1)]


def test_a_class_of_many_methods_is_found() -> None:
    def made(methods: int) -> ast.Module:
        return ast.parse("class A:\n" + "".join(f"    def m{index}(self): ...\n" for index in range(methods)))

    assert list(find_long(made(METHODS))) == []
    assert list(find_long(made(METHODS + 1))) == [("A", METHODS + 1)]
