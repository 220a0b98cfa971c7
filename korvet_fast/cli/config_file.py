"""The option --config-file: a TOML file with settings of the broker, and with places, which are options of commands."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from korvet_fast.config import read_places
from korvet_fast.errors import SettingError

F = TypeVar("F", bound=Callable[..., Any])


def config_option(*, exposed: bool) -> Callable[[F], F]:
    """Add --config-file to a command: its `store`, `listen` and so on hold unless an option or a variable gives them.

    `exposed`: the command gets the name of the file as `config_file`, for the settings in it; `--config` is the same.
    Commands that ask a broker have `--config NAME=VALUE` as Kafka's have it.
    """
    return click.option(
        *(("--config-file", "--config") if exposed else ("--config-file",)),
        "config_file",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        metavar="FILE",
        help="A TOML file of settings and places: docs/configuration.md has all of them.",
        is_eager=True,
        expose_value=exposed,
        callback=_load,
    )


def _load(context: click.Context, parameter: click.Parameter, file: Path | None) -> Path | None:
    if file is None:
        return None
    try:
        places = read_places(file)
    except SettingError as error:
        raise click.UsageError(str(error)) from None
    given: dict[str, Any] = {}
    for option in context.command.params:
        texts = next((texts for name, texts in places.items() if f"--{name}" in option.opts), None)
        if texts is None or option.name is None:
            continue
        given[option.name] = texts if option.multiple else ",".join(texts)
        try:
            option.type_cast_value(context, given[option.name])
        except click.BadParameter as error:
            raise click.UsageError(f"{file}: {option.opts[0].strip('-')}: {error.message}") from None
    context.default_map = {**(context.default_map or {}), **given}
    return file
