"""Every known attack, on every store: nobody else notices. `make abuse` takes longer and draws docs/abuse.md."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from abuse.campaign import Campaign
from abuse.row import Row
from abuse.scale import HERE, chosen, tree
from abuse.sheet import PAGE, STORES, draw, line, save_before


@pytest.fixture(scope="module")
def table() -> Iterator[list[Row]]:
    """All rows of this run; kept where they are more than a test."""
    rows: list[Row] = []
    yield rows
    if tree() != HERE:
        save_before(rows)
    elif chosen().name == "full" and {row.store for row in rows} == set(STORES):
        PAGE.write_text(draw(rows, f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC"))


@pytest.mark.timeout(7200)
@pytest.mark.parametrize("store", STORES)
def test_nobody_else_notices_an_attack(store: str, tmp_path: Path, table: list[Row]) -> None:
    campaign = Campaign(store, tmp_path, tree(), chosen(), lambda row: print(line(row), flush=True))
    try:
        rows = campaign.run()
    finally:
        table += campaign.rows
    broken = [what for row in rows for what in row.broken()]
    assert not broken, f"{len(broken)} bounds are passed:\n" + "\n".join(broken)
