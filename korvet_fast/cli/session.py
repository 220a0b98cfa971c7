"""Shared by the client commands: how they connect, and a run of a coroutine that prints errors as sentences."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import wraps
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import click

from korvet_fast.cli.config_file import config_option
from korvet_fast.cli.properties import read_properties
from korvet_fast.client.cluster import Cluster
from korvet_fast.client.protocol.errors import BrokerError, ClientError, Unreachable
from korvet_fast.client.security import is_security, read_security
from korvet_fast.config import variable
from korvet_fast.endpoint import Address, read_brokers
from korvet_fast.errors import Errors, SettingError

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])


class Bootstrap(NamedTuple):
    """The brokers to ask first, and the settings of connections that `read_security` reads."""

    addresses: tuple[Address, ...]
    security: Mapping[str, str]

    def __str__(self) -> str:
        return ",".join(map(str, self.addresses))


def parse_bootstrap(text: str) -> tuple[Address, ...]:
    """Read `127.0.0.1:9092`, or several with commas between them, or with `kafka://`. Raises `click.BadParameter`."""
    try:
        return read_brokers(text)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


def bootstrap_option(function: F) -> F:
    """Add the options `--bootstrap`, `--command-config`, and `--config-file`, whose file may hold the first.

    The command gets the first two as one `bootstrap`.
    """

    @wraps(function)
    def command(bootstrap: tuple[Address, ...], security: Mapping[str, str], **given: Any) -> Any:
        return function(bootstrap=Bootstrap(bootstrap, security), **given)

    option = click.option(
        "--command-config",
        "security",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        callback=_read_command_config,
        metavar="FILE",
        help="Settings of connections in a .properties file, by Kafka's names: security.protocol=SASL_SSL, ssl.…, …",
    )
    return _bootstrap(option(command))  # type: ignore[return-value]


def _bootstrap(function: Callable[..., Any]) -> Callable[..., Any]:
    option = click.option(
        "--bootstrap",
        type=parse_bootstrap,
        metavar="HOST:PORT",
        default="127.0.0.1:9092",
        show_default=True,
        envvar=variable("bootstrap"),
        show_envvar=True,
        help="A broker of the cluster; several are separated by commas.",
    )
    return option(config_option(exposed=False)(function))


def _read_command_config(_: click.Context, __: click.Parameter, file: Path | None) -> Mapping[str, str]:
    """The settings of connections in a file of Kafka's tools; it is often that of a whole client, with others in it."""
    if file is None:
        return {}
    try:
        found = {name: value for name, value in read_properties(file).items() if is_security(name)}
        read_security(found)
    except SettingError as error:
        raise click.UsageError(f"--command-config {file}: {error}") from None
    return found


def run(bootstrap: Bootstrap, work: Callable[[Cluster], Awaitable[T]], patience: float = 10.0) -> T:
    """Connect, run `work`, disconnect. `patience`: seconds for each request. A `ClientError` gives exit code 1."""

    async def connected() -> T:
        async with Cluster(bootstrap.addresses, patience, read_security(bootstrap.security)) as cluster:
            return await work(cluster)

    try:
        return asyncio.run(connected())
    except Unreachable as error:
        raise click.ClickException(
            f"{error}; start a broker with `korvet-fast serve`, or name another with --bootstrap"
        ) from None
    except ClientError as error:
        unknown = isinstance(error, BrokerError) and error.error == Errors.UNKNOWN_TOPIC_OR_PARTITION
        advice = "; `korvet-fast topic list` names those that there are" if unknown else ""
        raise click.ClickException(f"{error}{advice}") from None


async def run_each(rows: Iterable[T], act: Callable[[T], Awaitable[None]]) -> None:
    """Run `act` for each of these in turn, also after one has failed. Raises one `ClientError` with all failures."""
    failures = []
    for row in rows:
        try:
            await act(row)
        except ClientError as error:
            failures.append(str(error))
    if failures:
        raise ClientError("\n".join(failures))


def count(number: int, noun: str) -> str:
    """A number with its noun: `1 record`, `2 records`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
