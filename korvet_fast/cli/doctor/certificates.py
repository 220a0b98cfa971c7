"""Checks files of listeners with TLS: can they be used, when do they end, do they have the names clients ask for."""

import ssl
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from ipaddress import ip_address
from itertools import groupby
from operator import attrgetter
from pathlib import Path

from cryptography import x509

from korvet_fast.cli.broker_options import ANYWHERE
from korvet_fast.cli.doctor.finding import Finding, bad, good, warn
from korvet_fast.cli.replication import secure_peers
from korvet_fast.client.tls import make_context
from korvet_fast.config import Settings
from korvet_fast.core.certificate_end import CertificateEnd
from korvet_fast.core.replication.static_peers import StaticPeers, read_static_peers
from korvet_fast.endpoint import Endpoint
from korvet_fast.errors import SettingError
from korvet_fast.net.certificates import Certificates, find_ends, find_files
from korvet_fast.wire.dialects import OF_PEERS, TLS


def examine_certificates(
    listeners: Sequence[Endpoint], advertised: Sequence[Endpoint | None], settings: Settings
) -> list[Finding]:
    """Examine the files of the listeners with TLS, if there are any. `advertised`: what clients of each are told."""
    secure = [pair for pair in zip(listeners, advertised, strict=True) if pair[0].scheme.endswith(TLS)]
    if not secure:
        return []
    told = [endpoint or listener for listener, endpoint in secure if listener.scheme not in OF_PEERS]
    try:
        files = find_files(settings)
        context = Certificates(files).context()
        ends = find_ends(files)
        own = _read(files.keystore)
    except SettingError as error:
        return [bad("tls", str(error))]
    now = datetime.now(UTC)
    # Of each file the one that ends first stands for all.
    firsts = (min(group, key=attrgetter("ends")) for _, group in groupby(ends, attrgetter("file")))
    findings = [_judge_end(end, now) for end in firsts]
    if len(told) < len(secure) and (static := _find_peers(settings)) is not None:
        findings.append(_judge_peers(files.keystore, context, static, settings))
    return [*findings, *(_judge_hosts(files.keystore, own, told) if told else ())]


def _find_peers(settings: Settings) -> StaticPeers | None:
    """The brokers that connect to this one inside TLS; None if none do."""
    try:
        static = read_static_peers(settings)
    except SettingError:  # another finding
        return None
    return static if static is not None and static.tls else None


def _read(file: Path) -> x509.Certificate:
    """The first certificate of a file that OpenSSL could use. Raises `SettingError`."""
    try:
        return x509.load_pem_x509_certificate(file.read_bytes())
    except (OSError, ValueError) as error:
        raise SettingError(f"{file}: {error}") from None


def _judge_end(end: CertificateEnd, now: datetime) -> Finding:
    judge = bad if not end.is_good(now) else warn if end.is_due(now) else good
    return judge("tls", end.describe(now))


def _judge_peers(keystore: Path, context: ssl.SSLContext, static: StaticPeers, settings: Settings) -> Finding:
    """Have two brokers set up as this one connect to each other, in memory. `context`: of its listeners."""
    answers, requests = ssl.MemoryBIO(), ssl.MemoryBIO()
    host, connects = static.addresses[static.own].host, make_context(secure_peers(static, settings))
    assert connects is not None, "the brokers connect to each other inside TLS"
    client = connects.wrap_bio(answers, requests, server_hostname=host)
    server = context.wrap_bio(requests, answers, server_side=True)
    for side in (client, server, client, server):
        try:
            side.do_handshake()
        except ssl.SSLWantReadError:
            continue
        except ssl.SSLError as error:
            needs = f"for {host} and " if side is client else "for clients too (clientAuth) and "
            why = getattr(error, "verify_message", "") or str(error)
            return bad(
                "tls",
                f"{keystore}: the other brokers refuse it: {why}. It has to be {needs}of an authority in "
                "ssl.truststore.location",
            )
    return good("tls", f"{keystore}: other brokers set up like this one take it")


def _judge_hosts(file: Path, certificate: x509.Certificate, told: Sequence[Endpoint]) -> Iterator[Finding]:
    """Clients compare the name by which they connect with the subjectAltName (RFC 9525)."""
    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        yield warn("tls", f"{file} has no subjectAltName, and clients refuse it unless they check no names")
        return
    known = [name.lower() for name in names.get_values_for_type(x509.DNSName)]
    addresses = names.get_values_for_type(x509.IPAddress)
    for endpoint in told:
        if endpoint.host in ANYWHERE or _has_host(endpoint.host.lower(), known, addresses):
            continue
        has = ", ".join([*known, *map(str, addresses)])
        yield warn("tls", f"{file} is for {has}, and clients told {endpoint} refuse it: make one for {endpoint.host}")


def _has_host(host: str, names: Sequence[str], addresses: Sequence[object]) -> bool:
    try:
        return ip_address(host) in addresses
    except ValueError:
        return host in names or f"*.{host.partition('.')[2]}" in names
