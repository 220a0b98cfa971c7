"""Shared by the client commands: the option --bootstrap, and a run of a coroutine that prints errors as sentences."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, TypeAlias, TypeVar

import click

from korvet_fast.cli.config_file import config_option
from korvet_fast.client.cluster import Cluster
from korvet_fast.client.protocol.errors import ClientError, Unreachable
from korvet_fast.config import variable
from korvet_fast.endpoint import Address, read_brokers

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])
Bootstrap: TypeAlias = tuple[Address, ...]  # the brokers to ask first


def parse_bootstrap(text: str) -> Bootstrap:
    """Read `127.0.0.1:9092`, or several with commas between them, or with `kafka://`. Raises `click.BadParameter`."""
    try:
        return read_brokers(text)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


def bootstrap_option(function: F) -> F:
    """Add the options `--bootstrap`, and `--config-file`, whose file may hold the same, to a command."""
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


def run(bootstrap: Bootstrap, work: Callable[[Cluster], Awaitable[T]], patience: float = 10.0) -> T:
    """Connect, run `work`, disconnect. `patience`: seconds for each request. A `ClientError` gives exit code 1."""

    async def connected() -> T:
        async with Cluster(bootstrap, patience) as cluster:
            return await work(cluster)

    try:
        return asyncio.run(connected())
    except Unreachable as error:
        raise click.ClickException(
            f"{error}; start a broker with `korvet-fast serve`, or name another with --bootstrap"
        ) from None
    except ClientError as error:
        raise click.ClickException(str(error)) from None


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
