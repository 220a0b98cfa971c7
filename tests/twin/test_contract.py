"""Both implementations have exactly the names of the contract."""

import ast
import inspect
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import korvet_fast
import korvet_reference as reference

STUB = Path(korvet_fast.__file__).with_name("_native.pyi")
DUNDERS = {"__len__", "__init__", "__new__"}
# Threads, files, and memory as it is: nothing to compare. Python's own regular expressions are of another language.
UNPAIRED = {
    "FileMapping",
    "Flusher",
    "allocate_small_objects",
    "give_back_small_objects",
    "match_names",
    "reserve",
}


def contract() -> dict[str, ast.stmt]:
    """The public definitions of the stub that both implementations have, by name."""
    tree = ast.parse(STUB.read_text())
    found = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef | ast.FunctionDef)}
    return {name: node for name, node in found.items() if not name.startswith("_") and name not in UNPAIRED}


def public(thing: Any) -> set[str]:
    return {name for name in dir(thing) if not name.startswith("_")}


def members(node: ast.ClassDef) -> set[str]:
    names = {part.name for part in node.body if isinstance(part, ast.FunctionDef)}
    names |= {
        part.target.id for part in node.body if isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name)
    }
    return {name for name in names if not name.startswith("_")}


def test_the_names_are_those_of_the_contract(impl: ModuleType) -> None:
    modules = {name for name in public(impl) if inspect.ismodule(getattr(impl, name))}
    assert public(impl) - modules - UNPAIRED == set(contract())


def test_the_reference_exports_them_all() -> None:
    assert set(reference.__all__) == set(contract())


@pytest.mark.parametrize("name", [name for name, node in contract().items() if isinstance(node, ast.ClassDef)])
def test_classes_have_the_members_of_the_contract(impl: ModuleType, name: str) -> None:
    node = contract()[name]
    assert isinstance(node, ast.ClassDef)
    found = public(getattr(impl, name))
    if impl is reference and name == "Frames":
        found.add("limit")  # a plain attribute, which the class itself does not show
    if impl is reference and name == "Schema":
        found.add("name")
    if name == "Column":  # the reference's is an array, and has an array's methods
        return
    assert found == members(node)


@pytest.mark.parametrize("name", [name for name, node in contract().items() if isinstance(node, ast.FunctionDef)])
def test_functions_take_the_arguments_of_the_contract(impl: ModuleType, name: str) -> None:
    node = contract()[name]
    assert isinstance(node, ast.FunctionDef)
    wanted = [argument.arg for argument in (*node.args.posonlyargs, *node.args.args)]
    assert list(inspect.signature(getattr(impl, name)).parameters) == wanted
