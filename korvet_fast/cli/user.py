"""`korvet-fast user`: who may log in by SASL, in a running cluster or in a store that no broker uses."""

from collections.abc import Awaitable, Callable
from functools import wraps
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

import click

from korvet_fast.cli.broker_options import read_store
from korvet_fast.cli.sentence import Commands
from korvet_fast.cli.session import Bootstrap, bootstrap_option, run
from korvet_fast.cli.store import Offline, run_offline
from korvet_fast.cli.table import draw_table, json_option, print_json
from korvet_fast.client import users as asked
from korvet_fast.client.cluster import Cluster
from korvet_fast.core.authentication.scram import LEAST_ITERATIONS, MECHANISMS, MOST_ITERATIONS, Mechanism
from korvet_fast.core.authentication.users import LONGEST_NAME, hash_password
from korvet_fast.core.broker import Broker
from korvet_fast.printable import printable

F = TypeVar("F", bound=Callable[..., Any])
_LONGEST: Final = 1024  # bytes of a password
_BY: Final = "korvet-fast user"  # who changes users of a store that is open, for the log


class Where(NamedTuple):
    """The cluster to ask, or the store to open."""

    bootstrap: Bootstrap
    store: Offline | None

    def run(self, ask: Callable[[Cluster], Awaitable[None]], work: Callable[[Broker], Awaitable[None]]) -> None:
        """Have it done there. Raises `click.ClickException`."""
        if self.store is None:
            run(self.bootstrap, ask)
        else:
            run_offline(self.store, work)


def _where_options(function: F) -> F:
    @wraps(function)
    def command(bootstrap: Bootstrap, store: str | None, **given: Any) -> Any:
        offline: Offline | None = None
        if store is not None:
            _, place, settings = read_store(store, None, ())
            offline = place, settings
        return function(where=Where(bootstrap, offline), **given)

    option = click.option(
        "--store",
        metavar="file:DIRECTORY|redis://HOST:PORT/DB",
        help="Open this store instead of asking a broker; no broker may use it. So the first user is made.",
    )
    return bootstrap_option(option(command))  # type: ignore[return-value]


@click.group(cls=Commands)
def command() -> None:
    """Say who may log in on listeners kafka+sasl:// and kafka+sasl+tls://.

    \b
    Examples:
      korvet-fast user add ann --password-file ann.txt --store file:./korvet-data    # before the broker starts
      korvet-fast user add bob --password-file bob.txt --command-config ann.properties
      korvet-fast user list
      korvet-fast user remove bob
    """


@command.command()
@click.argument("name")
@click.option(
    "--password-file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    required=True,
    metavar="FILE",
    help="A file with the password in its only line.",
)
@click.option(
    "--mechanism",
    "mechanisms",
    type=click.Choice(list(MECHANISMS)),
    multiple=True,
    help="By which mechanism the user logs in; both if none is named. PLAIN takes either.",
)
@click.option(
    "--iterations",
    type=click.IntRange(LEAST_ITERATIONS, MOST_ITERATIONS),
    default=LEAST_ITERATIONS,
    show_default=True,
    help="How slow it is to guess the password from what the store keeps, and to log in.",
)
@_where_options
def add(name: str, password_file: Path, mechanisms: tuple[str, ...], iterations: int, where: Where) -> None:
    """Add a user, or give one another password. The store keeps neither the password nor what logs in.

    \b
    Examples:
      korvet-fast user add ann --password-file ann.txt
      korvet-fast user add ann --password-file ann.txt --mechanism SCRAM-SHA-512
    """
    if not 0 < len(name.encode()) <= LONGEST_NAME:
        raise click.UsageError(f"a user's name has 1 to {LONGEST_NAME} bytes")
    password = _read_password(password_file)
    wanted = [MECHANISMS[each] for each in mechanisms or MECHANISMS]
    where.run(
        lambda cluster: asked.set_password(cluster, name, password, wanted, iterations),
        lambda broker: _add(broker, name, password, wanted, iterations),
    )
    click.echo(f"user {printable(name)} logs in by {' or '.join(each.name for each in wanted)}")


@command.command(name="list")
@json_option
@_where_options
def show(as_json: bool, where: Where) -> None:
    """List the users and the mechanisms by which each may log in.

    \b
    Examples:
      korvet-fast user list
      korvet-fast user list --json
    """
    found: dict[str, list[tuple[str, int]]] = {}

    async def ask(cluster: Cluster) -> None:
        found.update(await asked.list_users(cluster))

    async def read(broker: Broker) -> None:
        for name, credentials in (await broker.users.list()).items():
            found[name] = [(each.name, credential.iterations) for each, credential in credentials.items()]

    where.run(ask, read)
    rows = [(name, mechanism, iterations) for name in sorted(found) for mechanism, iterations in sorted(found[name])]
    if as_json:
        print_json([{"user": name, "mechanism": each, "iterations": number} for name, each, number in rows])
    else:
        draw_table(("user", "mechanism", "iterations"), [(name, each, str(number)) for name, each, number in rows])


@command.command()
@click.argument("name")
@_where_options
def remove(name: str, where: Where) -> None:
    """Remove a user. Connections that are open stay so, until connections.max.reauth.ms is over.

    \b
    Examples:
      korvet-fast user remove bob
    """
    where.run(lambda cluster: asked.remove_user(cluster, name), lambda broker: _remove(broker, name))
    click.echo(f"user {printable(name)} logs in no more")


async def _add(broker: Broker, name: str, password: str, mechanisms: list[Mechanism], iterations: int) -> None:
    credentials = {each: hash_password(each, password, iterations) for each in mechanisms}
    await broker.users.alter(name, credentials, _BY)


async def _remove(broker: Broker, name: str) -> None:
    known = (await broker.users.list()).get(name)
    if known is None:
        raise click.ClickException(f"there is no user {name!r}")
    await broker.users.alter(name, dict.fromkeys(known), _BY)


def _read_password(file: Path) -> str:
    """The password in a file. Raises `click.UsageError`."""
    try:
        with file.open("rb") as opened:
            password = opened.read(_LONGEST + 3).decode("utf-8").removesuffix("\n").removesuffix("\r")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise click.UsageError(f"--password-file {file} cannot be read: {why}") from None
    if not password or "\n" in password or "\0" in password or len(password.encode()) > _LONGEST:
        raise click.UsageError(f"--password-file {file} must hold one line of 1 to {_LONGEST} bytes: the password")
    return password
