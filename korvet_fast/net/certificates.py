"""The certificates of listeners with TLS: read from PEM files, and read again when the files change.

The log tells in time when they end.
"""

import asyncio
import logging
import ssl
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic
from typing import Final, NamedTuple

from korvet_fast.config import Settings
from korvet_fast.core.certificate_end import CertificateEnd
from korvet_fast.errors import SettingError
from korvet_fast.net.principal import PrincipalRules
from korvet_fast.net.x509 import read_pem, read_period, read_subject
from korvet_fast.printable import printable

log = logging.getLogger(__name__)

_KEYSTORE: Final = "ssl.keystore.location"
_TRUSTSTORE: Final = "ssl.truststore.location"
_CLIENT_AUTH: Final = "ssl.client.auth"
_RULES: Final = "ssl.principal.mapping.rules"
_CHECKED: Final = 1.0  # seconds between two looks at the files, at least
_DAILY: Final = 86_400.0  # seconds between two warnings of one end
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
        self._context, self._ends = _load(files), _find_ends(files)
        self._next = monotonic() + checked

    def context(self) -> ssl.SSLContext:
        """The context for a connection that begins now: of the files as they are, or as they last could be used."""
        self._refresh()
        return self._context

    def ends(self) -> Sequence[CertificateEnd]:
        """When those end that new connections get to see, and those of the authorities that they are checked by."""
        self._refresh()
        return self._ends

    async def watch(self, daily: float = _DAILY) -> None:
        """Warn each day of those that end soon, until it is cancelled. Files that change are told of at once."""
        self._warn()
        while True:
            await asyncio.sleep(daily)
            if not self._refresh():
                self._warn()

    def _refresh(self) -> bool:
        """Look at the files, if it is time; whether new ones are in use from now on."""
        now = monotonic()
        if now < self._next:
            return False
        self._next = now + self._checked
        if (state := self._files.state()) == self._state:
            return False
        self._state = state  # files that cannot be used are read again when they change again
        return self._reload()

    def _reload(self) -> bool:
        try:
            self._context = _load(self._files)
        except SettingError as error:
            log.warning("certificates changed and cannot be used: %s. The former ones stay in use", error)
            return False
        self._ends = _find_ends(self._files)
        log.info("new connections get the certificates that changed: %s", self._files.keystore)
        self._warn()
        return True

    def _warn(self) -> None:
        now = datetime.now(UTC)
        for end in self._ends:
            if end.is_due(now):
                log.warning("%s", end.describe(now))


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


def find_ends(files: CertificateFiles) -> list[CertificateEnd]:
    """When each certificate of files that OpenSSL could use ends. Raises `SettingError`."""
    found = [(files.keystore, "clients refuse it")]
    if files.truststore is not None:
        found.append((files.truststore, "clients with certificates of it are refused"))
    return [end for file, then in found for end in _read_ends(file, then)]


def _read_ends(file: Path, then: str) -> Iterator[CertificateEnd]:
    try:
        for certificate in read_pem(file.read_text("latin-1")):
            subject = printable(read_subject(certificate)) or "its certificate"
            yield CertificateEnd(str(file), subject, *read_period(certificate), then)
    except (OSError, ValueError) as error:
        raise SettingError(f"{file}: {error}") from None


def _find_ends(files: CertificateFiles) -> list[CertificateEnd]:
    try:
        return find_ends(files)
    except SettingError as error:  # OpenSSL takes what others do not
        log.warning("when the certificates end cannot be told: %s", error)
        return []


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
