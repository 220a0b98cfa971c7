"""The certificates of listeners with TLS: read from PEM files, and read again when the files change."""

import logging
import ssl
from collections.abc import Mapping
from pathlib import Path
from time import monotonic
from typing import Final, NamedTuple

from korvet_fast.config import Settings
from korvet_fast.errors import SettingError
from korvet_fast.net.principal import PrincipalRules

log = logging.getLogger(__name__)

_KEYSTORE: Final = "ssl.keystore.location"
_TRUSTSTORE: Final = "ssl.truststore.location"
_CLIENT_AUTH: Final = "ssl.client.auth"
_RULES: Final = "ssl.principal.mapping.rules"
_CHECKED: Final = 1.0  # seconds between two looks at the files, at least
_VERIFY: Final[Mapping[str, ssl.VerifyMode]] = {
    "none": ssl.CERT_NONE,
    "requested": ssl.CERT_OPTIONAL,
    "required": ssl.CERT_REQUIRED,
}


class CertificateFiles(NamedTuple):
    """The files of the settings. `client_auth`: none, requested or required, `rules`: names of clients; as in Kafka."""

    keystore: Path
    truststore: Path | None
    client_auth: str
    rules: str = "DEFAULT"

    def state(self) -> list[tuple[int, int, int] | None]:
        """A value that changes when a file does."""
        return [file_state(file) for file in (self.keystore, self.truststore) if file is not None]


class Certificates:
    """The TLS context of new connections. Connections that are open keep the one that they began with.

    `principals`: how their clients are named.
    """

    def __init__(self, files: CertificateFiles, checked: float = _CHECKED) -> None:
        """Read the files. `checked`: seconds between two looks at them. Raises `SettingError`."""
        self.principals = PrincipalRules(files.rules)
        self._files = files
        self._checked = checked
        self._state = files.state()
        self._context = _load(files)
        self._next = monotonic() + checked

    def context(self) -> ssl.SSLContext:
        """The context for a connection that begins now: of the files as they are, or as they last could be used."""
        now = monotonic()
        if now >= self._next:
            self._next = now + self._checked
            if (state := self._files.state()) != self._state:
                self._state = state  # files that cannot be used are read again when they change again
                self._reload()
        return self._context

    def _reload(self) -> None:
        try:
            self._context = _load(self._files)
        except SettingError as error:
            log.warning("certificates changed and cannot be used: %s. The former ones stay in use", error)
        else:
            log.info("new connections get the certificates that changed: %s", self._files.keystore)


def find_files(settings: Settings) -> CertificateFiles:
    """Find the files that the settings name. Raises `SettingError` where one is missing among them."""
    keystore, truststore, client_auth = map(settings.text, (_KEYSTORE, _TRUSTSTORE, _CLIENT_AUTH))
    if not keystore:
        raise SettingError(
            f"a listener with TLS needs a certificate: --set {_KEYSTORE}=FILE, a PEM file with a private key and the "
            "certificates that belong to it"
        )
    if client_auth != "none" and not truststore:
        raise SettingError(
            f"{_CLIENT_AUTH}={client_auth} needs to know whose certificates clients may show: "
            f"--set {_TRUSTSTORE}=FILE, a PEM file with the certificates of those authorities"
        )
    return CertificateFiles(
        Path(keystore), Path(truststore) if truststore else None, client_auth, settings.text(_RULES)
    )


def _load(files: CertificateFiles) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.num_tickets = 0  # Kafka's clients keep their connections, and no state of ours outlives one
    context.options |= ssl.OP_NO_RENEGOTIATION  # a client could have the broker do it without end
    try:
        context.load_cert_chain(files.keystore, password=_refuse_password)
    except (OSError, ValueError) as error:
        expected = "a PEM file with a private key and the certificates that belong to it"
        raise SettingError(f"{_KEYSTORE}: {explain_file(files.keystore, error, expected)}") from None
    if files.truststore is not None:
        try:
            context.load_verify_locations(files.truststore)
        except (OSError, ValueError) as error:
            expected = "a PEM file with certificates of authorities"
            raise SettingError(f"{_TRUSTSTORE}: {explain_file(files.truststore, error, expected)}") from None
    context.verify_mode = _VERIFY[files.client_auth]
    return context


def _refuse_password() -> str:
    # Without a callback OpenSSL would ask whoever sits at the terminal, and the broker would wait.
    raise ValueError("its private key is encrypted")


def explain_file(file: Path | str, error: OSError | ValueError, expected: str) -> str:
    """Why OpenSSL could not use a file that was to be as `expected` says."""
    if isinstance(error, ssl.SSLError):
        return f"{file} is not {expected} ({error.reason or 'nothing found in it'})"
    if isinstance(error, OSError):
        return f"{file} cannot be read: {error.strerror}"
    return f"{file} cannot be used: {error}"


def file_state(file: Path) -> tuple[int, int, int] | None:
    """A value that changes when the file does; None where it is not there."""
    try:
        found = file.stat()
    except OSError:
        return None  # as while it is replaced; reading it says what is wrong
    return found.st_mtime_ns, found.st_size, found.st_ino
