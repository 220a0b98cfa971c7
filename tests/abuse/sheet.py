"""The table of attacks as text and as a page."""

import json
from collections.abc import Iterable
from pathlib import Path

from abuse.row import COMBINED, MEMORY, MIB, SINGLE, Row

PAGE = Path(__file__).parents[2] / "docs" / "abuse.md"
BEFORE = Path(__file__).with_name("before.json")
STORES = {"files": "On files", "redis": "Over Redis", "cluster": "Over a Redis Cluster"}
COLUMNS = "| | attack | before | longest wait | memory before, at most, after | peers hung up on |"

_HEAD = f"""# What attackers can do to others

Drawn by `make abuse` from what was measured; do not edit. Each attack is a function in `tests/abuse/attacks`. They run
one after the other and then all at once against one broker process, beside a client that sends the smallest requests
there are, an idempotent producer with `acks=all` and a consumer. Nothing that these were promised may be lost, doubled
or out of order. Bounds: no request of theirs waits longer than {1000 * SINGLE:.0f} ms during one attack and
{1000 * COMBINED:.0f} ms during all of them; memory grows by {MEMORY // MIB} MiB at most. Then the topics and groups
that attacks left are deleted, and ten minutes later the broker is back within a fifth of its first memory. A wait
counts unless the machine had half of it and the rest is within the bound: the broker had no processor, the host of the
virtual machine had taken one away, a trivial server beside it kept its own client waiting, or (for producer and
consumer) the disk took as long to flush a small file. *Before* is the commit `f6945a7`, which knew no defence: its
longest wait and its memory at most.

"""


def line(row: Row) -> str:
    """A row as text."""
    waits = " ".join(f"{role} {1000 * seconds:.0f}" for role, seconds in sorted(row.waits.items()))
    return (
        f"{row.store:7} {row.number:5} longest {1000 * row.longest:7.0f} ms ({waits}; echo {1000 * row.echo:.0f},"
        f" {row.excused} excused)  memory {row.before // MIB} -> {row.peak // MIB} -> {row.after // MIB} MiB"
        f"  sockets {row.sockets[0]} -> {row.sockets[1]} -> {row.sockets[2]}  files {row.files[0]} -> {row.files[1]}"
        f"  log {row.log_bytes} B  strikes {row.strikes}, ended {row.ended}  {row.sentence}"
        + "".join(f"\n        {each}" for each in row.remarks)
    )


def save_before(rows: Iterable[Row]) -> None:
    """Keep the figures of an earlier commit: seconds and bytes."""
    known = _load()
    for row in rows:
        known[f"{row.store} {row.number}"] = {"longest": round(row.longest, 4), "peak": row.peak}
    BEFORE.write_text(json.dumps(known, indent=1) + "\n")


def draw(rows: list[Row], when: str) -> str:
    """The page. Figures there are none of are left out."""
    before = _load()
    page = _HEAD + f"Measured {when}.\n\n"
    for store, title in STORES.items():
        page += f"## {title}\n\n{COLUMNS}\n|---|---|--:|--:|--:|--:|\n"
        page += "".join(_draw(row, before) for row in rows if row.store == store) + "\n"
    return page.rstrip() + "\n"


def _draw(row: Row, before: dict[str, dict[str, float]]) -> str:
    known = before.get(f"{row.store} {row.number}")
    then = "" if known is None else f"{1000 * known['longest']:,.0f} ms, {known['peak'] / MIB:,.0f} MiB"
    now = memory = ""
    if row.waits:
        now = f"{1000 * row.longest:,.0f} ms"
        memory = f"{row.before // MIB}, {row.peak // MIB}, {row.after // MIB} MiB"
    return f"| {row.number} | {row.sentence} | {then} | {now} | {memory} | {row.ended} |\n"


def _load() -> dict[str, dict[str, float]]:
    return json.loads(BEFORE.read_text()) if BEFORE.exists() else {}
