"""Certificates from PEM files: what is said of those that cannot be used, and files that change."""

import logging
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
)

from korvet_fast.config import read_settings
from korvet_fast.errors import SettingError
from korvet_fast.net.certificates import CertificateFiles, Certificates, find_files
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
