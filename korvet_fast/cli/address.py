"""Addresses as people write them, made into values at once."""

from typing import NamedTuple

import click

from korvet_fast.endpoint import Endpoint, read_address, read_bootstrap

SERVED = ("kafka",)  # listener schemes


class Listener(NamedTuple):
    """`scheme://host:port`."""

    scheme: str
    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}"


def split_address(text: str) -> Endpoint:
    """`host:port` or `[v6]:port` -> both. Raises `click.BadParameter`."""
    try:
        return read_address(text)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


def parse_listener(text: str) -> Listener:
    """`kafka://127.0.0.1:9092`. Raises `click.BadParameter`."""
    scheme, found, rest = text.partition("://")
    if not found:
        raise click.BadParameter(f"{text!r} has no scheme; write kafka://HOST:PORT")
    if scheme not in SERVED:
        raise click.BadParameter(f"{scheme}:// is not served by this version; write kafka://HOST:PORT")
    return Listener(scheme, *split_address(rest))


def parse_bootstrap(text: str) -> tuple[Endpoint, ...]:
    """`127.0.0.1:9092`, or several with commas between them. Raises `click.BadParameter`."""
    try:
        return read_bootstrap(text)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None
