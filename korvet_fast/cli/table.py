"""Listings on standard output: a table on a terminal, lines with tabs for other programs, JSON with --json."""

import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

import click

from korvet_fast.printable import printable, to_json

F = TypeVar("F", bound=Callable[..., Any])

json_option: Callable[[F], F] = click.option(
    "--json", "as_json", is_flag=True, help="Print JSON: docs/cli.md says which fields there are."
)


def draw_table(titles: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
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


def print_json(value: object) -> None:
    """Print JSON for people and programs: indented, and printable on a terminal."""
    click.echo(to_json(value, indent=2))
