"""Addresses as people write them, made into values at once."""

from typing import NamedTuple
from urllib.parse import urlsplit

import click

SERVED = ("kafka",)  # listener schemes


class Listener(NamedTuple):
    """`scheme://host:port`."""

    scheme: str
    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}"


def split_address(text: str) -> tuple[str, int]:
    """`host:port` or `[v6]:port` -> both. Raises `click.BadParameter`."""
    try:
        url = urlsplit(f"//{text}")
        host, port = url.hostname, url.port
    except ValueError:  # a bracket left open, or a port that is no number or above 65535
        host, port = None, None
    if not host or port is None or set(text) & set("/@?#"):
        raise click.BadParameter(f"{text!r} is not an address; write HOST:PORT, for example 127.0.0.1:9092")
    return host, port


def parse_listener(text: str) -> Listener:
    """`kafka://127.0.0.1:9092`. Raises `click.BadParameter`."""
    scheme, found, rest = text.partition("://")
    if not found:
        raise click.BadParameter(f"{text!r} has no scheme; write kafka://HOST:PORT")
    if scheme not in SERVED:
        raise click.BadParameter(f"{scheme}:// is not served by this version; write kafka://HOST:PORT")
    return Listener(scheme, *split_address(rest))


def parse_bootstrap(text: str) -> tuple[tuple[str, int], ...]:
    """`127.0.0.1:9092`, or several with commas between them. Raises `click.BadParameter`."""
    endpoints = tuple(split_address(part.strip()) for part in text.split(","))
    for host, port in endpoints:
        if port == 0:
            raise click.BadParameter(f"{host}:0 is no address to connect to; give the port the broker listens on")
    return endpoints
