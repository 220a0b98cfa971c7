"""Tables on standard output."""

import sys
from collections.abc import Iterable

import click

from korvet_fast.printable import printable


def draw_table(titles: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> None:
    """Print a table on a terminal; for other programs one line per row, with tabs between the columns."""
    shown = [tuple(map(printable, row)) for row in rows]
    if not sys.stdout.isatty():
        for row in shown:
            click.echo("\t".join(row))
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(*titles, box=None, header_style="bold")
    for row in shown:
        table.add_row(*map(Text, row))  # rich reads a string as markup: "[red]", ":smile:"
    Console().print(table)
