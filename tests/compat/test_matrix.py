"""Every client in every scenario, over one of the stores each: which one follows from KORVET_TEST_HYPOTHESIS_SEED.

KORVET_TEST_MATRIX=full (`make matrix`): over all of them.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import count
from pathlib import Path

import pytest

from compat.drivers import Unsupported
from compat.scenarios.table import EVERYWHERE, SCENARIOS, Cell, cells
from compat.world import Stage, World, open_world
from twin.profile import SEED

CELLS = cells(full=os.environ.get("KORVET_TEST_MATRIX") == "full", turn=int(SEED or 0))


@pytest.fixture(scope="module")
def worlds(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], World]]:
    """The world over a store. There is one at a time: asking for another store ends the one before."""
    with ExitStack() as now:
        at: list[tuple[str, World]] = []

        def find(store: str) -> World:
            if not at or at[0][0] != store:
                now.close()
                at[:] = [(store, now.enter_context(open_world(store, tmp_path_factory.mktemp(store))))]
            return at[0][1]

        yield find


@pytest.fixture
def open_fresh(tmp_path: Path) -> Iterator[Callable[..., World]]:
    """Opens worlds that end with the test."""
    with ExitStack() as ending:
        number = count()

        def open_one(store: str, *arguments: str) -> World:
            return ending.enter_context(open_world(store, tmp_path / f"world-{next(number)}", *arguments))

        yield open_one


@pytest.mark.parametrize(
    "cell", CELLS, ids=lambda cell: f"{cell.client}-{cell.scenario}-{cell.store}".replace(" ", "_")
)
def test_cell(
    cell: Cell,
    topic: str,
    worlds: Callable[[str], World],
    open_fresh: Callable[..., World],
    record_property: Callable[[str, object], None],
) -> None:
    world = worlds(cell.store)
    said = world.client(cell.client).ask("describe")
    record_property("cell", [*cell, f"{said['client']} {said['version']}"])
    stage = Stage(cell.client, topic, world, lambda *arguments: open_fresh(cell.store, *arguments))
    play = SCENARIOS[cell.scenario].play
    if cell.reason:
        with pytest.raises(Unsupported):
            play(stage)
    else:
        play(stage)


def test_every_client_is_tested_over_every_store() -> None:
    for client in {cell.client for cell in CELLS}:
        assert {cell.store for cell in CELLS if cell.client == client} == set(EVERYWHERE)
