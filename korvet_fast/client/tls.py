"""The TLS context of a client's connections, made of its files; why a connection did not come about."""

import ssl
from collections.abc import Hashable
from functools import lru_cache
from pathlib import Path
from typing import Final

from korvet_fast.client.protocol.errors import (
    AuthenticationFailed,
    ClientError,
    Unreachable,
    os_reason,
    refused_certificate,
)
from korvet_fast.client.security import Security
from korvet_fast.endpoint import Address
from korvet_fast.errors import SettingError
from korvet_fast.net.certificates import explain_file, file_state

_UNTRUSTED: Final = (18, 19, 20, 21)  # OpenSSL's X509_V_ERR_… of certificates without an authority that is known
_AUTHORITIES: Final = "a PEM file with certificates of authorities"
_CERTIFICATE: Final = "a PEM file with a private key and the certificates that belong to it"


def make_context(security: Security) -> ssl.SSLContext | None:
    """The context, from the files as they are now; None without TLS. Raises `SettingError`."""
    if not security.tls:
        return None
    files = (security.authorities, security.certificate, security.key)
    return _make(security._replace(login=None), tuple(file_state(Path(file)) for file in files if file))


@lru_cache(maxsize=8)  # brokers connect again and again, and to read the system's authorities takes 30 ms
def _make(security: Security, _: Hashable) -> ssl.SSLContext:
    """The context of files in this state. Raises `SettingError`."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.check_hostname = security.check_host
    try:
        if security.authorities:
            context.load_verify_locations(security.authorities)
        else:
            context.load_default_certs()
    except (OSError, ValueError) as error:
        raise SettingError(
            f"ssl.truststore.location: {explain_file(security.authorities, error, _AUTHORITIES)}"
        ) from None
    if security.certificate:
        try:
            # A function even without a password: OpenSSL would ask whoever sits at the terminal.
            context.load_cert_chain(security.certificate, security.key or None, lambda: _password(security))
        except (OSError, ValueError) as error:
            file = security.certificate if not security.key else f"{security.certificate} with {security.key}"
            raise SettingError(f"ssl.keystore.location: {explain_file(file, error, _CERTIFICATE)}") from None
    return context


def explain_refusal(endpoint: Address, error: Exception, patience: float, *, tls: bool) -> ClientError:
    """Why nobody could connect within `patience` seconds: `Unreachable`, or `AuthenticationFailed` by the certificate.

    `error`: an `OSError`, or what Python raises for what is no address at all: a broker's Metadata may say anything.
    """
    if isinstance(error, TimeoutError):
        return Unreachable(f"{endpoint} did not take a connection within {patience:g} s")
    if isinstance(error, ssl.SSLCertVerificationError):
        advice = "; name its authority by ssl.truststore.location" if error.verify_code in _UNTRUSTED else ""
        return AuthenticationFailed(f"the certificate of {endpoint} is refused: {error.verify_message}{advice}")
    if not isinstance(error, OSError):
        return Unreachable(f"cannot connect to {endpoint}: {error}")
    without_tls = f"no TLS with {endpoint}, which may be a listener without it"
    if tls and (not error.errno or isinstance(error, ssl.SSLEOFError)):  # an end of the stream; the first is asyncio's
        return Unreachable(f"{without_tls}: it hung up")
    if isinstance(error, ssl.SSLError):
        refused = refused_certificate(endpoint, os_reason(error))  # TLS 1.2
        return refused or Unreachable(f"{without_tls}: {os_reason(error)}")
    return Unreachable(f"cannot connect to {endpoint}: {os_reason(error)}")


def _password(security: Security) -> str:
    if not security.password:
        raise ValueError("its private key is encrypted: set ssl.key.password")
    return security.password
