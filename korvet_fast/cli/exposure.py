"""Warnings about exposure: of the store's password to users of this machine, of records to other machines."""

import socket
import stat
from collections.abc import Iterator
from ipaddress import ip_address
from pathlib import Path
from typing import NamedTuple

from korvet_fast.cli.broker_options import BrokerOptions
from korvet_fast.endpoint import Endpoint
from korvet_fast.store.redis.connection.url import RedisUrl
from korvet_fast.wire.dialects import OF_PEERS, TLS


class Exposure(NamedTuple):
    """The subject that is exposed, and a sentence: to whom, and what to do."""

    subject: str
    sentence: str


def find_exposures(options: BrokerOptions) -> Iterator[Exposure]:
    """Find all exposures. `serve` warns of them in its log, `doctor` among its findings."""
    if options.password_typed:
        yield Exposure(
            "password",
            "the password of the store is on the command line, where everybody on this machine can read it: give the "
            "store as KORVET_STORE in the environment, or write ?password_file=FILE into its URL",
        )
    if isinstance(options.place, RedisUrl) and options.place.password_file:
        file = Path(options.place.password_file)
        if file.stat().st_mode & stat.S_IROTH:
            yield Exposure("password", f"everybody on this machine can read {file}: chmod o-rwx {file}")
    for listener in options.listeners:
        encrypted = listener.scheme.endswith(TLS)
        if encrypted and options.settings.text("ssl.client.auth") == "required":
            continue
        if _reached_from_elsewhere(listener):
            way_out = (
                "ssl.client.auth=required" if encrypted else f"{listener.scheme}{TLS}:// and ssl.client.auth=required"
            )
            if listener.scheme in OF_PEERS:
                way_out = "a network of their own for the brokers"
            yield Exposure(
                "listen",
                f"whoever reaches {listener} can read, write and delete everything: listen on 127.0.0.1, let a "
                f"firewall admit none but your clients, or choose {way_out}",
            )


def _reached_from_elsewhere(listener: Endpoint) -> bool:
    """Whether the endpoint is bound beyond loopback. An unknown name cannot be bound, and `serve` says so."""
    try:
        found = socket.getaddrinfo(listener.host, listener.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except OSError:
        return False
    return not ip_address(found[0][4][0]).is_loopback  # the first is the one that is bound
