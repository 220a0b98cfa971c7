"""No module of a package imports, through others of the package, itself; subpackages count as one module.

Imports for type checking only count too: whoever needs a type needs the module in mind.
"""

from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter

import grimp
import pytest


def find_cycles(graph: grimp.ImportGraph, package: str) -> Iterator[list[str]]:
    """One cycle of each package, from `package` down, that has any: its modules, each imported by the next."""
    children = graph.find_children(package)
    for child in children:
        yield from find_cycles(graph, child)
    part_of = {each: child for child in children for each in (child, *graph.find_descendants(child))}
    part_of[package] = package
    imports: dict[str, set[str]] = {part: set() for part in part_of.values()}
    for module, part in part_of.items():
        found = graph.find_modules_directly_imported_by(module)
        imports[part] |= {part_of[each] for each in found & part_of.keys()} - {part}
    try:
        TopologicalSorter(imports).prepare()
    except CycleError as error:
        yield error.args[1]


def test_no_package_has_a_cycle() -> None:
    assert list(find_cycles(grimp.build_graph("korvet_fast", cache_dir=None), "korvet_fast")) == []


@pytest.mark.parametrize(
    ("imports", "cycles"),
    [
        ([("p.a", "p.b"), ("p.b", "p.c")], []),
        ([("p.a", "p.b"), ("p.b", "p.a")], [{"p.a", "p.b"}]),
        ([("p.a", "p.s.x"), ("p.s.y", "p.a")], [{"p.a", "p.s"}]),
        ([("p.s.x", "p.s.y"), ("p.s.y", "p.s.x")], [{"p.s.x", "p.s.y"}]),
        ([("p", "p.a"), ("p.a", "p")], [{"p", "p.a"}]),
        ([("p.a", "q"), ("q", "p.a")], []),
    ],
    ids=["none", "modules", "through a subpackage", "in a subpackage", "with the package itself", "outside"],
)
def test_a_cycle_is_found(imports: list[tuple[str, str]], cycles: list[set[str]]) -> None:
    made = grimp.ImportGraph()
    for module in ("p", "p.a", "p.b", "p.c", "p.s", "p.s.x", "p.s.y", "q"):
        made.add_module(module)
    for importer, imported in imports:
        made.add_import(importer=importer, imported=imported)
    assert [set(each) for each in find_cycles(made, "p")] == cycles
