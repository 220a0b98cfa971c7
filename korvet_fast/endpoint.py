"""Where a broker listens, or where clients reach it; how people write that (a leaf)."""

from typing import Final, NamedTuple
from urllib.parse import urlsplit

KAFKA: Final = "kafka"
# What Kafka's clients call the listeners that they have settings for.
_PROTOCOLS: Final = {
    f"{KAFKA}+tls": "SSL",
    f"{KAFKA}+sasl": "SASL_PLAINTEXT",
    f"{KAFKA}+sasl+tls": "SASL_SSL",
}


class Address(NamedTuple):
    """A host and a TCP port."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class Endpoint(NamedTuple):
    """An address, and the scheme of the dialect that is spoken there (Kafka's EndPoint)."""

    scheme: str
    host: str
    port: int

    @property
    def address(self) -> Address:
        """The host and the port alone."""
        return Address(self.host, self.port)

    def __str__(self) -> str:
        return f"{self.scheme}://{self.address}"


def read_address(text: str) -> Address:
    """Read `host:port` or `[v6]:port`. Raises `ValueError` with a sentence."""
    try:
        url = urlsplit(f"//{text}")
        host, port = url.hostname, url.port
    except ValueError:  # a bracket left open, or a port that is no number or above 65535
        host, port = None, None
    if not host or port is None or set(text) & set("/@?#"):
        raise ValueError(f"{text!r} is not an address; write HOST:PORT, for example 127.0.0.1:9092")
    return Address(host, port)


def read_endpoint(text: str) -> Endpoint:
    """Read `scheme://host:port`; no scheme is Kafka's. Raises `ValueError` with a sentence."""
    scheme, found, rest = text.strip().partition("://")
    return Endpoint(scheme, *read_address(rest)) if found else Endpoint(KAFKA, *read_address(scheme))


def read_bootstrap(text: str) -> tuple[Address, ...]:
    """Read `127.0.0.1:9092`, or several with commas between them. Raises `ValueError` with a sentence."""
    addresses = tuple(read_address(part.strip()) for part in text.split(","))
    for host, port in addresses:
        if port == 0:
            raise ValueError(f"{host}:0 is no address to connect to; give the port the broker listens on")
    return addresses


def read_brokers(text: str) -> tuple[Address, ...]:
    """Read as `read_bootstrap`, each also with `kafka://` before it. Raises `ValueError` with a sentence."""
    return read_bootstrap(",".join(_without_scheme(part.strip()) for part in text.split(",")))


def _without_scheme(text: str) -> str:
    scheme, found, rest = text.partition("://")
    if not found:
        return text
    if scheme in _PROTOCOLS:
        raise ValueError(
            f"write {rest} for {text!r}, and security.protocol={_PROTOCOLS[scheme]} in the client's settings"
        )
    if scheme != KAFKA:
        raise ValueError(f"{text!r} is for another protocol than Kafka's; write {KAFKA}://{rest}, of that listener")
    return rest


class HttpsUrl(NamedTuple):
    """An address as `text`, and what it says."""

    text: str
    host: str
    port: int
    authority: str  # for the Host header
    target: str


def read_https_url(text: str) -> HttpsUrl:
    """Read an address. Raises `ValueError` with what it has to be."""
    wrong = ValueError("an address that begins with https://, without a password in it")
    try:
        parts = urlsplit(text)
        port = parts.port or 443
    except ValueError:
        raise wrong from None
    if (
        parts.scheme != "https"
        or not parts.hostname
        or "@" in parts.netloc
        or " " in text
        or not (text.isascii() and text.isprintable())
    ):
        raise wrong
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return HttpsUrl(text, parts.hostname, port, parts.netloc, target)
