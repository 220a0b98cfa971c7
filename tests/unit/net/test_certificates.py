"""Certificates from PEM files: what is said of those that cannot be used, or end soon, and files that change."""

import asyncio
import logging
from base64 import b64encode
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
)

from korvet_fast.cli.authority import open_authority
from korvet_fast.config import read_settings
from korvet_fast.errors import SettingError
from korvet_fast.net import certificates as module
from korvet_fast.net.certificates import CertificateFiles, Certificates, find_files
from korvet_fast.net.x509 import read_pem
from tls_world import Authority


def read(directory: Path, *settings: str) -> Certificates:
    """The certificates of these settings, in which `DIR` is the directory."""
    return Certificates(find_files(read_settings([each.replace("DIR", str(directory)) for each in settings])))


def encrypt_key(file: Path) -> None:
    key = load_pem_private_key(file.read_bytes(), None)
    file.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"secret")))


KEYSTORE = "ssl.keystore.location=DIR/server.pem"


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ((), "a listener with TLS needs a certificate: --set ssl.keystore.location=FILE, a PEM file"),
        (
            (KEYSTORE, "ssl.client.auth=required"),
            "ssl.client.auth=required needs to know whose certificates clients may show: --set ssl.truststore.location",
        ),
        (("ssl.keystore.location=DIR/missing.pem",), "missing.pem cannot be read: No such file or directory"),
        (("ssl.keystore.location=DIR",), "cannot be read: Is a directory"),
        (("ssl.keystore.location=DIR/empty.pem",), "empty.pem is not a PEM file with a private key"),
        (("ssl.keystore.location=DIR/ca.pem",), "ca.pem is not a PEM file with a private key"),
        (("ssl.keystore.location=DIR/mixed.pem",), "mixed.pem is not a PEM file with a private key"),
        (("ssl.keystore.location=DIR/locked.pem",), "locked.pem cannot be used: its private key is encrypted"),
        ((KEYSTORE, "ssl.truststore.location=DIR/missing.pem"), "ssl.truststore.location: "),
        ((KEYSTORE, "ssl.truststore.location=DIR/empty.pem"), "empty.pem is not a PEM file with certificates of"),
        ((KEYSTORE, "ssl.principal.mapping.rules=nothing"), "'nothing' is no rule"),
    ],
)
def test_files_that_cannot_be_used_are_named(tmp_path: Path, settings: tuple[str, ...], words: str) -> None:
    authority = Authority(tmp_path)
    authority.issue()
    (tmp_path / "empty.pem").touch()
    encrypt_key(authority.issue("locked"))
    key = authority.issue("other").read_text().partition("-----BEGIN CERTIFICATE-----")[0]
    certificate = (tmp_path / "server.pem").read_text().partition("-----BEGIN CERTIFICATE-----")[2]
    (tmp_path / "mixed.pem").write_text(f"{key}-----BEGIN CERTIFICATE-----{certificate}")
    with (tmp_path / "locked.pem").open("a") as locked:
        locked.write(f"-----BEGIN CERTIFICATE-----{certificate}")
    with pytest.raises(SettingError) as caught:
        read(tmp_path, *settings)
    assert words in str(caught.value)


def test_files_that_changed_are_read_again_and_bad_ones_leave_the_former(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    authority = Authority(tmp_path)
    file = authority.issue()
    certificates = Certificates(CertificateFiles(file, authority.file, "required"), 0.0)
    first = certificates.context()
    assert certificates.context() is first
    authority.issue()
    second = certificates.context()
    assert second is not first
    file.write_text("half of a file that is being wri")
    assert [certificates.context() for _ in range(3)] == [second] * 3
    file.unlink()
    assert certificates.context() is second
    authority.issue()
    third = certificates.context()
    assert third is not second
    Authority(tmp_path)  # writes the truststore anew
    assert certificates.context() is not third
    lines = [(record.levelname, record.getMessage()) for record in caplog.records]
    assert [level for level, _ in lines] == ["INFO", "WARNING", "WARNING", "INFO", "INFO"]
    assert lines[1][1].startswith("certificates changed and cannot be used: ssl.keystore.location: ")
    assert lines[1][1].endswith("The former ones stay in use")


def test_files_are_looked_at_once_in_a_while(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    certificates = authority.certificates(checked=3600.0)
    first = certificates.context()
    authority.issue()
    assert certificates.context() is first


def warned(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]


def make(place: Path, days: int) -> CertificateFiles:
    """A broker's files: its certificate ends after so many days, its authority's in ten years."""
    made = open_authority(place).issue_server(("broker.test",), days)
    return CertificateFiles(made, place / "ca.pem", "required")


def test_of_every_certificate_in_the_files_it_is_known_when_it_ends(tmp_path: Path) -> None:
    files = make(tmp_path, 90)
    ends = Certificates(files).ends()
    authority = "CN=Korvet Fast private authority"
    assert [(Path(end.file).name, end.subject) for end in ends] == [
        ("server.pem", "CN=broker.test"),
        ("server.pem", authority),
        ("ca.pem", authority),
    ]
    assert [(end.ends - datetime.now(UTC)).days for end in ends] == [89, 3649, 3649]


def test_the_log_tells_at_the_start_each_day_and_of_new_files(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    files = make(tmp_path, 10)

    async def until(lines: int) -> None:
        while len(warned(caplog)) < lines:
            await asyncio.sleep(0.001)

    async def scenario() -> None:
        certificates = Certificates(files, 0.0)
        assert warned(caplog) == []  # it is made by doctor, too, which has no log
        watching = asyncio.ensure_future(certificates.watch(daily=0.01))
        await until(3)
        watching.cancel()
        make(tmp_path, 9)
        certificates.context()
        make(tmp_path, 90)
        certificates.context()

    asyncio.run(asyncio.wait_for(scenario(), 60))
    first, *others = warned(caplog)
    assert first.startswith(f"{tmp_path / 'server.pem'}: CN=broker.test ends on ")
    assert first.endswith(", in 9 days: put a new one there, which a running broker reads by itself")
    assert others[:-1] == [first] * (len(others) - 1)
    assert ", in 8 days: " in others[-1]


def test_of_files_that_changed_since_yesterday_the_log_tells_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Where no connection has come meanwhile."""
    certificates = Certificates(make(tmp_path, 90), 0.0)

    async def scenario() -> None:
        watching = asyncio.ensure_future(certificates.watch(daily=0.0))
        await asyncio.sleep(0.01)
        assert warned(caplog) == []
        make(tmp_path, 10)
        while not warned(caplog):
            await asyncio.sleep(0)
        watching.cancel()

    asyncio.run(asyncio.wait_for(scenario(), 60))
    assert len(warned(caplog)) == 1


def test_an_authority_that_has_ended_is_said_to_have(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Clock(datetime):
        @classmethod
        def now(cls, tz: object = None) -> datetime:  # type: ignore[override]
            return datetime.now(UTC) + timedelta(days=3651)

    certificates = Certificates(make(tmp_path, 90), 0.0)
    monkeypatch.setattr(module, "datetime", Clock)
    make(tmp_path, 91)
    certificates.context()
    own, *_, authority = warned(caplog)
    assert own.endswith(", and clients refuse it: put a new one there")
    assert authority.startswith(f"{tmp_path / 'ca.pem'}: CN=Korvet Fast private authority ended on ")
    assert authority.endswith(", and clients with certificates of it are refused: put a new one there")


def split(files: CertificateFiles) -> list[bytes]:
    """The certificates (DER) beside the key."""
    return read_pem(files.keystore.read_text())


def write(files: CertificateFiles, certificate: bytes, kind: str = "") -> None:
    """Have this certificate (DER) beside the key."""
    key = files.keystore.read_text().partition("-----BEGIN CERTIFICATE-----")[0]
    text = b64encode(certificate).decode()
    files.keystore.write_text(f"{key}-----BEGIN {kind}CERTIFICATE-----\n{text}\n-----END {kind}CERTIFICATE-----\n")


def test_of_a_trusted_certificate_it_is_known_when_it_ends(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Behind the certificate stands for what it is trusted."""
    files = make(tmp_path, 90)
    own, before = split(files)[0], Certificates(files).ends()
    write(files, own + b"\x30\x00", "TRUSTED ")
    after = Certificates(files).ends()
    assert after == [before[0], *before[2:]]  # the keystore had a chain
    assert warned(caplog) == []


def test_a_file_that_only_openssl_can_read_is_used(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Its last day is the 99th of a month."""
    files = make(tmp_path, 90)
    (own, *_), end = split(files), Certificates(files).ends()[0].ends
    write(files, own.replace(f"{end:%y%m%d%H%M}".encode(), f"{end:%y%m99%H%M}".encode()))
    assert Certificates(files).ends() == []
    (said,) = warned(caplog)
    assert said.startswith(f"when the certificates end cannot be told: {files.keystore}: ")
