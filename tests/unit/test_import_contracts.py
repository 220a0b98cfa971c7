"""The floors of pyproject.toml, asked about imports that nobody has written yet."""

import tomllib
from pathlib import Path

import grimp
import pytest
from importlinter.contracts.layers import LayersContract

ROOT = Path(__file__).parents[2]


def find_contract(name: str) -> LayersContract:
    """A contract of layers, as `lint-imports` reads it."""
    options = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    (contract,) = (each for each in options["contracts"] if each["name"] == name)
    return LayersContract(name, {"root_packages": [options["root_package"]]}, contract)


@pytest.fixture
def graph() -> grimp.ImportGraph:
    return grimp.build_graph("korvet_fast", cache_dir=None)


def test_the_floors_as_they_are(graph: grimp.ImportGraph) -> None:
    assert find_contract("floors").check(graph, verbose=False).kept


@pytest.mark.parametrize(
    ("importer", "imported"),
    [
        ("korvet_fast.store.embedded.log", "korvet_fast.core.clock"),
        ("korvet_fast.store.redis.log.writer", "korvet_fast.core.partition.partition"),
        ("korvet_fast.store.types", "korvet_fast.core.generation"),
        ("korvet_fast.core.topics.topics", "korvet_fast.wire.dialect"),
    ],
)
def test_an_import_upward_breaks_the_floors(graph: grimp.ImportGraph, importer: str, imported: str) -> None:
    graph.add_import(importer=importer, imported=imported, line_number=1, line_contents="")
    assert not find_contract("floors").check(graph, verbose=False).kept
