"""What `serve` and `doctor` are told about a broker: options in, one frozen value out."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import click

from korvet_fast.cli.address import Listener, parse_listener
from korvet_fast.config import Settings, read_settings
from korvet_fast.errors import SettingError
from korvet_fast.store.redis.url import RedisUrl, parse_url

DEFAULT_STORE = "file:./korvet-data"
DEFAULT_LISTENER = Listener("kafka", "127.0.0.1", 9092)
ANYWHERE = ("0.0.0.0", "::")  # noqa: S104 (compared with, not bound)


class BrokerOptions(NamedTuple):
    """A broker to be: where its data lies, where it listens, what clients are told, and its settings."""

    store: str  # for the log: as given, without a password
    place: Path | RedisUrl  # a directory for the embedded store, or a Redis
    listeners: tuple[Listener, ...]
    advertised: tuple[Listener | None, ...]  # for each listener; None: what it is bound to
    settings: Settings


def broker_options(function: Callable[[BrokerOptions], None]) -> Callable[..., None]:
    """Give a command the options of a broker; `function` gets them as one `BrokerOptions`."""

    def command(**given: Any) -> None:
        function(_read(**given))

    command.__doc__ = function.__doc__
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


_OPTIONS = (
    click.option(
        "--store",
        default=DEFAULT_STORE,
        show_default=True,
        metavar="file:DIRECTORY|redis://HOST:PORT/DB",
        help="Where the records are kept. Also rediss://, unix://, redis+sentinel://HOST,HOST/NAME, "
        "redis+cluster://HOST,HOST.",
    ),
    click.option(
        "--listen",
        "listeners",
        type=parse_listener,
        multiple=True,
        default=[str(DEFAULT_LISTENER)],
        show_default=True,
        metavar="kafka://HOST:PORT",
        help="An address to serve; port 0 is any free port. May be given more than once.",
    ),
    click.option(
        "--advertise",
        "advertised",
        type=parse_listener,
        multiple=True,
        metavar="kafka://HOST:PORT",
        help="What clients are told to connect to: one for each --listen, in the same order.",
    ),
    click.option(
        "--config",
        "file",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        metavar="FILE",
        help="A TOML file of settings.",
    ),
    click.option(
        "--set", "flags", multiple=True, metavar="NAME=VALUE", help="One setting; wins over KORVET_* and the file."
    ),
)


def _read(
    store: str,
    listeners: tuple[Listener, ...],
    advertised: tuple[Listener, ...],
    file: Path | None,
    flags: tuple[str, ...],
) -> BrokerOptions:
    try:
        settings = read_settings(flags, os.environ, file)
    except SettingError as error:
        raise click.UsageError(str(error)) from None
    place = _place(store)
    shown = store if isinstance(place, Path) else str(place)
    return BrokerOptions(shown, place, listeners, _advertised(listeners, advertised), settings)


def _place(store: str) -> Path | RedisUrl:
    scheme, colon, rest = store.partition(":")
    if colon and scheme != "file":
        try:
            return parse_url(store)
        except SettingError as error:
            raise click.UsageError(f"--store: {error}, or file:DIRECTORY") from None
    if not colon:
        raise click.UsageError(f"--store: {store!r} has no scheme; write file:DIRECTORY, for example {DEFAULT_STORE}")
    if not rest or rest.startswith("//"):
        raise click.UsageError(f"--store {store!r}: write file:DIRECTORY, for example file:/var/lib/korvet")
    return Path(rest)


def _advertised(listeners: tuple[Listener, ...], given: tuple[Listener, ...]) -> tuple[Listener | None, ...]:
    if given and len(given) != len(listeners):
        raise click.UsageError(f"--listen gives {len(listeners)}, --advertise {len(given)} addresses: pair them")
    for listener in given:
        if listener.port == 0 or listener.host in ANYWHERE:
            raise click.UsageError(f"--advertise {listener}: nobody can connect to that; give a host and a port")
    for listener in () if given else listeners:
        if listener.host in ANYWHERE:
            raise click.UsageError(
                f"--listen {listener} takes connections on every address of this machine, so say which one clients "
                "are to be told: --advertise kafka://HOST:PORT"
            )
    return given or (None,) * len(listeners)
