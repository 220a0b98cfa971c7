"""Warnings about exposure: of the store's password to users of this machine, of records to other machines."""

import socket
import stat
from collections.abc import Iterator, Mapping, Sequence
from ipaddress import ip_address
from pathlib import Path
from typing import Final, NamedTuple

import click

from korvet_fast.cli.broker_options import BrokerOptions
from korvet_fast.config_acl import ACL
from korvet_fast.config_oauth import UNSECURED
from korvet_fast.core.authentication.oauthbearer import OAUTHBEARER
from korvet_fast.core.replication.static_peers import PROTOCOL
from korvet_fast.endpoint import Endpoint
from korvet_fast.store.redis.connection.url import RedisUrl
from korvet_fast.wire.dialects import OF_OPERATORS, OF_PEERS, SASL, TLS

# What clients send that others may log in with.
_SENT: Final[Mapping[str, str]] = {"PLAIN": "passwords", OAUTHBEARER: "tokens"}


class Exposure(NamedTuple):
    """The subject that is exposed, and a sentence: to whom, and what to do."""

    subject: str
    sentence: str


def find_exposures(options: BrokerOptions) -> Iterator[Exposure]:
    """Find all exposures. `serve` warns of them in its log, `doctor` among its findings.

    Raises `click.UsageError` for a listener that must not be opened so.
    """
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
        mechanisms = options.settings.text("sasl.enabled.mechanisms").split(",")
        if listener.scheme.removesuffix(TLS) == SASL and OAUTHBEARER in mechanisms and options.settings.flag(UNSECURED):
            yield _warn_of_unsecured(listener)
        if not _reached_from_elsewhere(listener):
            continue
        if listener.scheme in OF_OPERATORS:
            yield from _check_operators(listener, options.settings.text("http.token.file"))
        elif listener.scheme in OF_PEERS:
            yield from _warn_of_peers(listener)
        elif options.settings.text("authorizer") != ACL:
            yield Exposure("listen", _explain(listener, options.settings.text("ssl.client.auth") == "required"))
        if listener.scheme == SASL:
            yield _warn_of_readers(listener, mechanisms)


def _explain(listener: Endpoint, certificates: bool) -> str:
    """Who may do everything at a listener without an authorizer. `certificates`: TLS asks clients for them."""
    if listener.scheme.removesuffix(TLS) == SASL:
        known = "that logs in"
    elif listener.scheme.endswith(TLS) and certificates:
        known = "with a certificate"
    else:
        return (
            f"whoever reaches {listener} can read, write and delete everything: listen on 127.0.0.1, let a "
            f"firewall admit none but your clients, or choose {_name_way_out(listener)}"
        )
    return (
        f"every client {known} may do everything on {listener}, as there is no authorizer: "
        "--set authorizer=acl, and name yourself in super.users"
    )


def _check_operators(listener: Endpoint, token: str) -> Iterator[Exposure]:
    """The exposure of a listener of operators that strangers reach; raises `click.UsageError` without a token."""
    if not token:
        raise click.UsageError(
            f"--listen {listener} can be reached from other machines, and would tell everybody what this broker "
            "does: name a file with a token, --set http.token.file=FILE, or listen on 127.0.0.1"
        )
    if not listener.scheme.endswith(TLS):
        yield Exposure(
            "listen",
            f"{listener} has no TLS, so the token of http.token.file can be read on the way: listen on "
            f"{listener.scheme}{TLS}://",
        )


def _warn_of_peers(listener: Endpoint) -> Iterator[Exposure]:
    """The exposure of what brokers send each other without TLS: they prove that they know the secret, and no more."""
    if not listener.scheme.endswith(TLS):
        yield Exposure(
            "listen",
            f"{listener} has no TLS, so what brokers send each other can be read and changed on the way: give the "
            f"brokers a network of their own, or listen on {listener.scheme}{TLS}:// and set {PROTOCOL}=SSL",
        )


def _warn_of_readers(listener: Endpoint, mechanisms: Sequence[str]) -> Exposure:
    """The exposure of passwords and tokens, or of records, at a listener with logins and without TLS."""
    sent = [_SENT[each] for each in mechanisms if each in _SENT]
    read = " and ".join(sent) or "all records"
    return Exposure(
        "listen", f"{listener} has no TLS, so {read} can be read on the way: listen on {listener.scheme}{TLS}://"
    )


def _warn_of_unsecured(listener: Endpoint) -> Exposure:
    """The exposure of everything at a listener that takes tokens which nobody has signed."""
    return Exposure(
        "listen",
        f"whoever reaches {listener} may log in under every name, super users' too, as {UNSECURED}=true takes tokens "
        "that nobody has signed: only for tests of clients; set sasl.oauthbearer.jwks.endpoint.url instead",
    )


def _name_way_out(listener: Endpoint) -> str:
    """How such a listener asks its clients who they are."""
    if listener.scheme.endswith(TLS):
        return "ssl.client.auth=required with authorizer=acl"
    return f"{listener.scheme}{TLS}:// and ssl.client.auth=required with authorizer=acl"


def _reached_from_elsewhere(listener: Endpoint) -> bool:
    """Whether the endpoint is bound beyond loopback. An unknown name cannot be bound, and `serve` says so."""
    try:
        found = socket.getaddrinfo(listener.host, listener.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except OSError:
        return False
    return not ip_address(found[0][4][0]).is_loopback  # the first is the one that is bound
