"""NAME=VALUE, as options and arguments take it."""

import click


def parse_assignments(
    context: click.Context, parameter: click.Parameter, given: tuple[str, ...]
) -> list[tuple[str, str]]:
    """Parse any number of NAME=VALUE, in order; names may repeat. Raises `click.BadParameter`."""
    pairs = []
    for text in given:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise click.BadParameter(f"{text!r} is not NAME=VALUE, such as retention.ms=86400000")
        pairs.append((name, value))
    return pairs
