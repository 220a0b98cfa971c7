"""The options of a broker, for `serve` and `doctor`: options in, one frozen value out."""

import os
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import click
from click.core import ParameterSource

from korvet_fast.cli.config_file import config_option
from korvet_fast.config import Settings, read_settings, variable
from korvet_fast.endpoint import Endpoint, read_endpoint
from korvet_fast.errors import SettingError
from korvet_fast.store.redis.connection.url import RedisUrl, parse_url
from korvet_fast.wire.dialects import DIALECTS, IN_ZOOKEEPER, OF_CLIENTS, OF_OPERATORS, SCHEMES
from korvet_fast.zookeeper.connect_string import ConnectString, read_connect_string

DEFAULT_STORE = "file:./korvet-data"
DEFAULT_LISTENER = Endpoint("kafka", "127.0.0.1", 9092)
ADDRESSES = ","  # between several in a variable
ANYWHERE = ("0.0.0.0", "::")  # noqa: S104 (compared with, not bound)


class BrokerOptions(NamedTuple):
    """A broker to be started: its store, its listeners, the endpoints that clients are told, and its settings."""

    store: str  # for the log: as given, without a password
    place: Path | RedisUrl  # a directory for the embedded store, or a Redis
    listeners: tuple[Endpoint, ...]
    advertised: tuple[Endpoint | None, ...]  # for each listener; None: the endpoint it is bound to
    settings: Settings
    password_typed: bool  # a password of the store stands on the command line
    zookeeper: ConnectString | None = None  # where clients of Kafka 0.7 look for brokers


def parse_endpoint(text: str) -> Endpoint:
    """Read `kafka://127.0.0.1:9092`; without a scheme it is Kafka's. Raises `click.BadParameter`."""
    scheme, found, _ = text.strip().partition("://")
    if found and scheme not in SCHEMES:
        raise click.BadParameter(f"{scheme}:// is not served by this version; write {_SERVED}")
    try:
        return read_endpoint(text)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


def broker_options(function: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of a broker; `function` gets them as one `BrokerOptions`, and then its others."""

    def command(
        store: str,
        listeners: tuple[Endpoint, ...],
        advertised: tuple[Endpoint, ...],
        zookeeper: str | None,
        config_file: Path | None,
        flags: tuple[str, ...],
        **others: Any,
    ) -> None:
        function(_read(store, listeners, advertised, zookeeper, config_file, flags), **others)

    command.__doc__ = function.__doc__
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


_ENDPOINT = click.types.FuncParamType(parse_endpoint)
_ENDPOINT.envvar_list_splitter = ADDRESSES  # type: ignore[misc]
_SERVED = "|".join(f"{scheme}://HOST:PORT" for scheme in DIALECTS)
store_option = click.option(
    "--store",
    default=DEFAULT_STORE,
    show_default=True,
    envvar=variable("store"),
    show_envvar=True,
    metavar="file:DIRECTORY|redis://HOST:PORT/DB",
    help="Where the records are kept. Also rediss://, unix://, redis+sentinel://HOST,HOST/NAME, "
    "redis+cluster://HOST,HOST. A password does not belong here: ?password_file=FILE.",
)
settings_options = (
    config_option(exposed=True),
    click.option(
        "--set", "flags", multiple=True, metavar="NAME=VALUE", help="One setting; wins over KORVET_* and the file."
    ),
)
_OPTIONS = (
    store_option,
    click.option(
        "--listen",
        "listeners",
        type=_ENDPOINT,
        multiple=True,
        default=[str(DEFAULT_LISTENER)],
        show_default=True,
        envvar=variable("listen"),
        show_envvar=True,
        metavar=_SERVED,
        help="An address to serve; no scheme means kafka://, port 0 any free port; kafka+tls:// and so on are inside "
        "TLS, with the files of ssl.keystore.location and ssl.truststore.location; on kafka+sasl:// clients log in. "
        "May be given more than once.",
    ),
    click.option(
        "--advertise",
        "advertised",
        type=_ENDPOINT,
        multiple=True,
        envvar=variable("advertise"),
        show_envvar=True,
        metavar=_SERVED,
        help="What clients are told to connect to: one for each --listen, in the same order.",
    ),
    click.option(
        "--zookeeper",
        envvar=variable("zookeeper"),
        show_envvar=True,
        metavar="HOST:PORT[/CHROOT]",
        help="A ZooKeeper where clients of Kafka 0.7 find this broker; it needs a listener legacy://.",
    ),
    *settings_options,
)


def read_store(store: str, config_file: Path | None, flags: tuple[str, ...]) -> tuple[bool, Path | RedisUrl, Settings]:
    """Whether --store was typed, the place it names, and the settings. Raises `click.UsageError`."""
    try:
        settings = read_settings(flags, os.environ, config_file)
    except SettingError as error:
        raise click.UsageError(str(error)) from None
    source = click.get_current_context().get_parameter_source("store")
    place = _place(store, _name_source(source, config_file))
    return source is ParameterSource.COMMANDLINE, place, settings


def _read(
    store: str,
    listeners: tuple[Endpoint, ...],
    advertised: tuple[Endpoint, ...],
    zookeeper: str | None,
    config_file: Path | None,
    flags: tuple[str, ...],
) -> BrokerOptions:
    on_command_line, place, settings = read_store(store, config_file, flags)
    if all(listener.scheme not in OF_CLIENTS for listener in listeners):
        given = " ".join(f"--listen {listener}" for listener in listeners)
        raise click.UsageError(
            f"{given} is not for clients: add the address that they use, --listen {DEFAULT_LISTENER}"
        )
    for address, times in Counter(listener.address for listener in listeners if listener.port).items():
        if times > 1:
            raise click.UsageError(f"--listen gives {address} {times} times: each listener needs a port of its own")
    shown = store if isinstance(place, Path) else str(place)
    typed = on_command_line and isinstance(place, RedisUrl) and place.password_in_url
    told = _advertised(listeners, advertised)
    return BrokerOptions(shown, place, listeners, told, settings, typed, _zookeeper(zookeeper, listeners))


def _zookeeper(given: str | None, listeners: tuple[Endpoint, ...]) -> ConnectString | None:
    if given is None:
        return None
    try:
        where = read_connect_string(given)
    except ValueError as error:
        raise click.UsageError(f"--zookeeper: {error}") from None
    if all(listener.scheme not in IN_ZOOKEEPER for listener in listeners):
        raise click.UsageError(
            f"--zookeeper {where} is where clients of Kafka 0.7 find this broker, but it has no listener for them: add "
            "--listen legacy://127.0.0.1:6667, or leave --zookeeper out"
        )
    return where


def _name_source(source: ParameterSource | None, config_file: Path | None) -> str:
    """What an error about the store begins with."""
    if source is ParameterSource.DEFAULT_MAP:
        return f"{config_file}: store"
    return variable("store") if source is ParameterSource.ENVIRONMENT else "--store"


def _place(store: str, given: str) -> Path | RedisUrl:
    """The place of a store. `given`: what names it, for errors. Raises `click.UsageError`."""
    scheme, colon, rest = store.partition(":")
    if colon and scheme.lower() != "file":
        try:
            return parse_url(store)
        except SettingError as error:
            raise click.UsageError(f"{given}: {error}") from None
    if not colon:
        raise click.UsageError(f"{given}: {store!r} has no scheme; write file:DIRECTORY, for example {DEFAULT_STORE}")
    if not rest or rest.startswith("//"):
        raise click.UsageError(f"{given} {store!r}: write file:DIRECTORY, for example file:/var/lib/korvet")
    return Path(rest)


def _advertised(listeners: tuple[Endpoint, ...], given: tuple[Endpoint, ...]) -> tuple[Endpoint | None, ...]:
    if given and len(given) != len(listeners):
        raise click.UsageError(f"--listen gives {len(listeners)}, --advertise {len(given)} addresses: pair them")
    for listener, told in zip(listeners if given else (), given, strict=True):
        if told.scheme != listener.scheme:
            raise click.UsageError(f"--advertise {told} belongs to --listen {listener}, which has another scheme")
    for listener in given:
        if listener.port == 0 or listener.host in ANYWHERE:
            raise click.UsageError(f"--advertise {listener}: nobody can connect to that; give a host and a port")
    for listener in () if given else listeners:
        if listener.host in ANYWHERE and listener.scheme not in OF_OPERATORS:
            raise click.UsageError(
                f"--listen {listener} takes connections on every address of this machine, so say which one clients "
                f"are to be told: --advertise {listener.scheme}://HOST:PORT"
            )
    return given or (None,) * len(listeners)
