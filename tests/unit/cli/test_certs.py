"""`certs`: the files it writes, handshakes with them, and directories that it leaves alone."""

import ssl
import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from cryptography import x509

from korvet_fast.cli import root
from korvet_fast.net.certificates import CertificateFiles, Certificates


def certs(directory: Path, *arguments: str) -> Result:
    return CliRunner().invoke(root, ["certs", str(directory), *arguments])


def shake_hands(server: ssl.SSLContext, client: ssl.SSLContext, host: str) -> ssl.SSLObject:
    """Both halves of a handshake in memory; the server's half."""
    there, back = ssl.MemoryBIO(), ssl.MemoryBIO()
    halves = (
        client.wrap_bio(back, there, server_hostname=host),
        server.wrap_bio(there, back, server_side=True),
    )
    open_halves = list(halves)
    for _ in range(10):
        for half in list(open_halves):
            try:
                half.do_handshake()
            except ssl.SSLWantReadError:
                continue
            open_halves.remove(half)
        if not open_halves:
            return halves[1]
    raise AssertionError("the handshake never ended")


def test_broker_and_client_know_each_other_by_its_files(tmp_path: Path) -> None:
    place = tmp_path / "made" / "certs"
    made = certs(place, "--host", "broker.example.org", "--host", "10.1.2.3", "--client", "ann")
    assert made.exit_code == 0, made.output
    assert sorted(file.name for file in place.iterdir()) == ["ca.key", "ca.pem", "client.pem", "server.pem"]
    modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in place.iterdir()}
    assert modes == {"ca.key": 0o600, "ca.pem": 0o644, "client.pem": 0o600, "server.pem": 0o600}
    server = Certificates(CertificateFiles(place / "server.pem", place / "ca.pem", "required")).context()
    client = ssl.create_default_context(cafile=place / "ca.pem")
    client.verify_flags |= ssl.VERIFY_X509_STRICT  # as Python 3.13 has it
    client.load_cert_chain(place / "client.pem")
    for host in ("broker.example.org", "10.1.2.3", "localhost", "127.0.0.1", "::1"):
        shown = shake_hands(server, client, host).getpeercert()
        assert shown is not None
        assert shown["subject"] == ((("commonName", "ann"),),)
    client.load_cert_chain(place / "server.pem")  # as a broker does that copies another one
    shown = shake_hands(server, client, "localhost").getpeercert()
    assert shown is not None
    assert shown["subject"] == ((("commonName", "broker.example.org"),),)
    with pytest.raises(ssl.SSLCertVerificationError, match=r"doesn't match|mismatch"):
        shake_hands(server, client, "elsewhere.example.org")


def test_its_second_call_renews_what_the_same_authority_signed(tmp_path: Path) -> None:
    assert certs(tmp_path).exit_code == 0
    authority, former = (tmp_path / "ca.pem").read_bytes(), (tmp_path / "server.pem").read_bytes()
    assert certs(tmp_path, "--days", "7").exit_code == 0
    assert (tmp_path / "ca.pem").read_bytes() == authority
    assert (tmp_path / "server.pem").read_bytes() != former
    own = x509.load_pem_x509_certificates((tmp_path / "server.pem").read_bytes())[0]
    assert timedelta(days=6) < own.not_valid_after_utc - datetime.now(UTC) < timedelta(days=8)
    assert not list(tmp_path.glob(".*"))


@pytest.mark.parametrize("file", ["ca.pem", "ca.key"])
def test_half_an_authority_is_left_alone(tmp_path: Path, file: str) -> None:
    (tmp_path / file).touch()
    refused = certs(tmp_path)
    assert (refused.exit_code, "is there without" in refused.output) == (2, True)
    assert [each.name for each in tmp_path.iterdir()] == [file]


def test_an_authority_of_another_kind_is_left_alone(tmp_path: Path) -> None:
    assert certs(tmp_path / "one").exit_code == certs(tmp_path / "other").exit_code == 0
    place = tmp_path / "one"
    (place / "ca.key").write_bytes((tmp_path / "other" / "ca.key").read_bytes())
    refused = certs(place)
    assert (refused.exit_code, "is not the key of" in refused.output) == (2, True)
    (place / "ca.key").write_text("no key")
    refused = certs(place)
    assert (refused.exit_code, "are no authority of this command" in refused.output) == (2, True)


def test_what_cannot_be_written_or_named_is_said(tmp_path: Path) -> None:
    for host in ("grün.example.org", "a b", "", "a:9093", "kafka+tls://a", "-a", "a..b", "a.*", "a\0", "x" * 64):
        refused = certs(tmp_path, "--host", host)
        assert (refused.exit_code, "is no host of a certificate" in refused.output) == (2, True), host
    for host in ("*.example.org", "my_broker", "a-b.c1", "fd00::1"):
        assert certs(tmp_path, "--host", host).exit_code == 0, host
    (tmp_path / "file").write_text("")
    refused = certs(tmp_path / "file" / "below")
    assert (refused.exit_code, "Not a directory" in refused.output) == (1, True)
    refused = certs(tmp_path / "long", "--client", "x" * 65)
    assert refused.exit_code == 1
