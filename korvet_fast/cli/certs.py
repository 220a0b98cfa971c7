"""`korvet-fast certs DIR`: a private authority and certificates, for trying out TLS and for small installations."""

from pathlib import Path

import click

from korvet_fast.client.protocol.errors import os_reason
from korvet_fast.errors import SettingError

_HOSTS = ("localhost", "127.0.0.1", "::1")


@click.command()
@click.argument("directory", type=click.Path(file_okay=False, path_type=Path), metavar="DIR")
@click.option(
    "--host",
    "hosts",
    multiple=True,
    metavar="HOST",
    help="A name or an address by which clients reach the broker; localhost, 127.0.0.1 and ::1 always are.",
)
@click.option(
    "--client", "name", default="client", show_default=True, metavar="NAME", help="The client's name, its CN=."
)
@click.option(
    "--days",
    type=click.IntRange(1, 825),
    default=365,
    show_default=True,
    help="How long server.pem and client.pem are valid.",
)
def command(directory: Path, hosts: tuple[str, ...], name: str, days: int) -> None:
    """Write ca.pem, server.pem (key and chain) and client.pem (key and chain) to DIR, for listeners with +tls.

    The authority of an earlier call is used again, so its clients trust the new server.pem, and a running broker
    gives it to its next connections. Whoever has ca.key can make certificates: keep it from the broker's machine.

    \b
    Examples:
      korvet-fast certs certs
      korvet-fast certs certs --host broker1.example.org --host 10.1.2.3 --client ann
    """
    from korvet_fast.cli.authority import open_authority  # cryptography takes long to import

    try:
        authority = open_authority(directory)
        written = (
            (
                directory / "ca.pem",
                "whose certificates are trusted: ssl.truststore.location, of clients ssl.ca.location",
            ),
            (authority.issue_server([*hosts, *_HOSTS], days), "key and chain of the broker: ssl.keystore.location"),
            (authority.issue_client(name, days), f"key and chain of the client CN={name}"),
            (directory / "ca.key", "the authority's key: keep it where no broker is"),
        )
    except SettingError as error:
        raise click.UsageError(str(error)) from None
    except OSError as error:
        raise click.ClickException(f"{directory}: {os_reason(error)}; name a directory that you may write in") from None
    except ValueError as error:
        raise click.ClickException(f"{directory}: {error}") from None
    for file, purpose in written:
        click.echo(f"{file}  {purpose}")
