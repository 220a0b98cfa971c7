"""A private certificate authority in a directory, and certificates that it issues: PEM files, as RFC 5280 has them."""

import os
import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from ipaddress import IPv4Address, IPv6Address, ip_address
from pathlib import Path
from typing import Final, NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, EllipticCurvePrivateKey, generate_private_key
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from korvet_fast.errors import SettingError

AUTHORITY: Final = "ca.pem"
AUTHORITY_KEY: Final = "ca.key"
_NAME: Final = "Korvet Fast private authority"
_YEARS: Final = timedelta(days=3650)  # of the authority; its certificates end earlier
_CLOCKS: Final = timedelta(hours=1)  # that the clocks of two machines may differ
_OF_OWNER: Final = 0o600
_OF_ALL: Final = 0o644
# As in RFC 1123, with the underscores that container tools put into names, and a * for one name below.
_HOST: Final = re.compile(r"(\*\.)?(?!-)[A-Za-z0-9_-]{1,63}(?<!-)(\.(?!-)[A-Za-z0-9_-]{1,63}(?<!-))*\.?")


class Authority(NamedTuple):
    """A certificate authority, which issues into its directory."""

    directory: Path
    certificate: x509.Certificate
    key: EllipticCurvePrivateKey

    def issue_server(self, hosts: Sequence[str], days: int) -> Path:
        """Write server.pem: a key, and its chain for a listener that clients reach by `hosts`, names or addresses.

        A broker shows it to other brokers as their client, too.
        """
        alternatives = x509.SubjectAlternativeName([_name_host(host) for host in hosts])
        return self._issue(
            "server", hosts[0], days, (ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH), alternatives
        )

    def issue_client(self, name: str, days: int) -> Path:
        """Write client.pem: a key, and its chain for a client with the common name `name`."""
        return self._issue("client", name, days, (ExtendedKeyUsageOID.CLIENT_AUTH,), None)

    def _issue(
        self,
        file: str,
        common_name: str,
        days: int,
        usages: Sequence[x509.ObjectIdentifier],
        alternatives: x509.SubjectAlternativeName | None,
    ) -> Path:
        key = generate_private_key(SECP256R1())
        ends = min(datetime.now(UTC) + timedelta(days=days), self.certificate.not_valid_after_utc)
        builder = _begin(common_name, self.certificate.subject, key, ends)
        builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        builder = builder.add_extension(_key_usage(signs=False), critical=True)
        builder = builder.add_extension(x509.ExtendedKeyUsage(usages), critical=False)
        if alternatives is not None:
            builder = builder.add_extension(alternatives, critical=False)
        identifier = x509.AuthorityKeyIdentifier.from_issuer_public_key(self.key.public_key())
        made = builder.add_extension(identifier, critical=False).sign(self.key, hashes.SHA256())
        chain = made.public_bytes(Encoding.PEM) + self.certificate.public_bytes(Encoding.PEM)
        return _write(self.directory / f"{file}.pem", _encode_key(key) + chain, _OF_OWNER)


def open_authority(directory: Path) -> Authority:
    """The authority of this directory; one is made there if there is none. Raises `SettingError`, or `OSError`."""
    certificate, key = directory / AUTHORITY, directory / AUTHORITY_KEY
    if certificate.exists() != key.exists():
        missing, there = (key, certificate) if certificate.exists() else (certificate, key)
        raise SettingError(f"{there} is there without {missing}: put that back, or name another directory")
    if not key.exists():
        return _make_authority(directory)
    try:
        loaded = load_pem_private_key(key.read_bytes(), None)
        read = x509.load_pem_x509_certificate(certificate.read_bytes())
    except (TypeError, ValueError) as error:
        raise SettingError(f"{certificate} and {key} are no authority of this command: {error}") from None
    if not isinstance(loaded, EllipticCurvePrivateKey) or loaded.public_key() != read.public_key():
        raise SettingError(f"{key} is not the key of {certificate}, as this command makes them")
    return Authority(directory, read, loaded)


def _make_authority(directory: Path) -> Authority:
    directory.mkdir(parents=True, exist_ok=True)
    key = generate_private_key(SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, _NAME)])
    builder = _begin(_NAME, subject, key, datetime.now(UTC) + _YEARS)
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
    made = builder.add_extension(_key_usage(signs=True), critical=True).sign(key, hashes.SHA256())
    _write(directory / AUTHORITY_KEY, _encode_key(key), _OF_OWNER)
    _write(directory / AUTHORITY, made.public_bytes(Encoding.PEM), _OF_ALL)
    return Authority(directory, made, key)


def _begin(
    common_name: str, issuer: x509.Name, key: EllipticCurvePrivateKey, ends: datetime
) -> x509.CertificateBuilder:
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])
    builder = x509.CertificateBuilder(issuer, subject, key.public_key(), x509.random_serial_number())
    builder = builder.not_valid_before(datetime.now(UTC) - _CLOCKS).not_valid_after(ends)
    return builder.add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)


def _key_usage(*, signs: bool) -> x509.KeyUsage:
    """`signs`: the key is an authority's, and signs certificates; else it signs handshakes."""
    return x509.KeyUsage(
        digital_signature=not signs,
        key_cert_sign=signs,
        crl_sign=signs,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _name_host(host: str) -> x509.GeneralName:
    """A name of RFC 5280 for a host. Raises `SettingError`."""
    try:
        address: IPv4Address | IPv6Address = ip_address(host)
    except ValueError:
        pass
    else:
        return x509.IPAddress(address)
    if not _HOST.fullmatch(host):
        raise SettingError(
            f"{host!r} is no host of a certificate: write an address, or a name of letters, digits, dots and hyphens"
            " (others as xn--…), without a port"
        )
    return x509.DNSName(host)


def _encode_key(key: EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())  # Java reads no other format


def _write(file: Path, data: bytes, mode: int) -> Path:
    """Replace the file in one step, so that a running broker reads the former or the new one, and never a half."""
    fresh = file.with_name(f".{file.name}.new")
    fresh.unlink(missing_ok=True)
    with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as opened:
        opened.write(data)
        os.fsync(opened.fileno())
    return fresh.replace(file)
