"""NAME=VALUE, as options and arguments take it."""

from collections.abc import Iterable

import click


def split_assignments(given: Iterable[str], hint: str) -> list[tuple[str, str]]:
    """Split texts into name and value, in order. Raises `click.BadParameter` with the wrong text and the hint."""
    pairs = []
    for text in given:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise click.BadParameter(f"{text!r}{hint}")
        pairs.append((name, value))
    return pairs


def parse_assignments(
    context: click.Context, parameter: click.Parameter, given: tuple[str, ...]
) -> list[tuple[str, str]]:
    """Parse any number of NAME=VALUE, in order; names may repeat. Raises `click.BadParameter`."""
    return split_assignments(given, " is not NAME=VALUE, such as retention.ms=86400000")
