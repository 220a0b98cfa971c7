"""Where a broker listens, and how people write it."""

from typing import NamedTuple
from urllib.parse import urlsplit


class Endpoint(NamedTuple):
    """Where a broker listens."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def read_address(text: str) -> Endpoint:
    """`host:port` or `[v6]:port`. Raises `ValueError` with a sentence."""
    try:
        url = urlsplit(f"//{text}")
        host, port = url.hostname, url.port
    except ValueError:  # a bracket left open, or a port that is no number or above 65535
        host, port = None, None
    if not host or port is None or set(text) & set("/@?#"):
        raise ValueError(f"{text!r} is not an address; write HOST:PORT, for example 127.0.0.1:9092")
    return Endpoint(host, port)


def read_bootstrap(text: str) -> tuple[Endpoint, ...]:
    """`127.0.0.1:9092`, or several with commas between them. Raises `ValueError` with a sentence."""
    endpoints = tuple(read_address(part.strip()) for part in text.split(","))
    for host, port in endpoints:
        if port == 0:
            raise ValueError(f"{host}:0 is no address to connect to; give the port the broker listens on")
    return endpoints
