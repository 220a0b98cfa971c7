"""What doctor says of certificates: files that cannot be used, their end, and names that clients ask for."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from click.testing import CliRunner
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from korvet_fast.cli import root
from korvet_fast.cli.authority import open_authority
from korvet_fast.cli.doctor import certificates as module
from korvet_fast.cli.doctor.certificates import examine_certificates
from korvet_fast.cli.doctor.finding import Finding, Verdict
from korvet_fast.config import read_settings
from korvet_fast.endpoint import Endpoint

PLAIN = Endpoint("kafka", "127.0.0.1", 0)
ENCRYPTED = Endpoint("text+tls", "127.0.0.1", 0)


def examine(place: Path, told: Endpoint | None = None, *more: str) -> list[Finding]:
    settings = read_settings([f"ssl.keystore.location={place / 'server.pem'}", *more])
    return examine_certificates([PLAIN, ENCRYPTED], [None, told], settings)


def make(place: Path, days: int) -> None:
    open_authority(place).issue_server(("127.0.0.1", "::1", "localhost", "*.example.org"), days)


def make_for_servers_only(file: Path, host: str) -> None:
    """As many authorities make them."""
    authority, now = open_authority(file.parent), datetime.now(UTC)
    key, name = generate_private_key(SECP256R1()), x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, host)])
    issuer = authority.certificate.subject
    builder = x509.CertificateBuilder(issuer, name, key.public_key(), 1, now, now + timedelta(days=90))
    builder = builder.add_extension(x509.SubjectAlternativeName([x509.DNSName(host)]), critical=False)
    builder = builder.add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
    made = builder.sign(authority.key, hashes.SHA256())
    encoded = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    file.write_bytes(encoded + made.public_bytes(Encoding.PEM))


def test_without_tls_no_file_is_read() -> None:
    assert examine_certificates([PLAIN], [None], read_settings([])) == []


def test_files_that_cannot_be_used(tmp_path: Path) -> None:
    (finding,) = examine_certificates([ENCRYPTED], [None], read_settings([]))
    assert (finding.verdict, "--set ssl.keystore.location=FILE" in finding.sentence) == (Verdict.BAD, True)
    (tmp_path / "server.pem").write_text("")
    (finding,) = examine(tmp_path)
    assert (finding.verdict, "is not a PEM file" in finding.sentence) == (Verdict.BAD, True)


@pytest.mark.parametrize(
    ("later", "verdict", "words"),
    [
        (-1, Verdict.BAD, "is valid from"),
        (0, Verdict.GOOD, "CN=127.0.0.1 ends on"),
        (59, Verdict.GOOD, "in 30 days"),
        (61, Verdict.WARN, "put a new one there, which a running broker reads by itself"),
        (90, Verdict.BAD, "clients refuse it"),
    ],
)
def test_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, later: int, verdict: Verdict, words: str) -> None:
    """Of a certificate of 90 days, `later` days after it was made."""

    class Clock(datetime):
        @classmethod
        def now(cls, tz: object = None) -> datetime:  # type: ignore[override]
            return datetime.now(UTC) + timedelta(days=later) + timedelta(hours=later == 59)

    make(tmp_path, 90)
    monkeypatch.setattr(module, "datetime", Clock)
    (finding,) = examine(tmp_path)
    assert (finding.verdict, words in finding.sentence) == (verdict, True), finding


def test_of_a_chain_the_first_to_end_counts(tmp_path: Path) -> None:
    """The broker's own certificate may outlive that of the authority behind it."""
    make(tmp_path, 90)
    (tmp_path / "short").mkdir()
    make(tmp_path / "short", 10)
    behind = (tmp_path / "short" / "server.pem").read_text().partition("-----BEGIN CERTIFICATE-----")
    with (tmp_path / "server.pem").open("a") as chain:
        chain.write(f"{behind[1]}{behind[2]}")
    (finding,) = examine(tmp_path)
    assert (finding.verdict, "in 9 days" in finding.sentence) == (Verdict.WARN, True), finding


def test_the_authorities_are_looked_at_too(tmp_path: Path) -> None:
    make(tmp_path, 90)
    required = (f"ssl.truststore.location={tmp_path / 'ca.pem'}", "ssl.client.auth=required")
    own, authority = examine(tmp_path, None, *required)
    assert {own.verdict, authority.verdict} == {Verdict.GOOD}
    assert "private authority ends on" in authority.sentence


@pytest.mark.parametrize(
    ("host", "known"),
    [
        ("127.0.0.1", True),
        ("::1", True),
        ("LOCALHOST", True),
        ("broker.example.org", True),
        ("0.0.0.0", True),  # no client connects to that
        ("deep.broker.example.org", False),
        ("10.1.2.3", False),
        ("example.org", False),
    ],
)
def test_names_that_clients_ask_for(tmp_path: Path, host: str, known: bool) -> None:
    make(tmp_path, 90)
    findings = examine(tmp_path, Endpoint("text+tls", host, 9))
    assert [finding.verdict for finding in findings] == [Verdict.GOOD] + [Verdict.WARN] * (not known)
    assert known or f"make one for {host}" in findings[-1].sentence


def test_a_certificate_without_names(tmp_path: Path) -> None:
    made = open_authority(tmp_path).issue_client("broker", 90)
    made.rename(tmp_path / "server.pem")
    assert [finding.verdict for finding in examine(tmp_path)] == [Verdict.GOOD, Verdict.WARN]


def test_that_of_a_broker_among_peers_is_for_the_host_they_name_and_for_clients(tmp_path: Path) -> None:
    make(tmp_path, 90)
    secret = tmp_path / "secret"
    secret.write_text("x" * 40)
    listener = Endpoint("replica+tls", "0.0.0.0", 9192)
    settings = [
        f"ssl.keystore.location={tmp_path / 'server.pem'}",
        f"ssl.truststore.location={tmp_path / 'ca.pem'}",
        "ssl.client.auth=required",
        "node.id=1",
        "security.inter.broker.protocol=SSL",
        f"replication.secret.file={secret}",
    ]

    def findings(peers: str) -> list[Finding]:
        told = Endpoint("replica+tls", "elsewhere", 9192)  # which no broker reads
        return examine_certificates([listener], [told], read_settings([*settings, f"replication.peers={peers}"]))

    assert {finding.verdict for finding in findings("1@one.example.org:9192")} == {Verdict.GOOD}
    (wrong,) = [finding for finding in findings("1@10.1.2.3:9192") if finding.verdict is not Verdict.GOOD]
    assert wrong.verdict is Verdict.BAD
    assert "the other brokers refuse it: IP address mismatch" in wrong.sentence
    assert "It has to be for 10.1.2.3 and of an authority in ssl.truststore.location" in wrong.sentence
    make_for_servers_only(tmp_path / "server.pem", "one.example.org")
    (wrong,) = [finding for finding in findings("1@one.example.org:9192") if finding.verdict is not Verdict.GOOD]
    assert (wrong.verdict, "It has to be for clients too (clientAuth)" in wrong.sentence) == (Verdict.BAD, True)
    (tmp_path / "others").mkdir()
    make(tmp_path / "others", 90)
    (tmp_path / "others/server.pem").rename(tmp_path / "server.pem")
    (wrong,) = [finding for finding in findings("1@one.example.org:9192") if finding.verdict is not Verdict.GOOD]
    assert "the other brokers refuse it: self-signed certificate in certificate chain" in wrong.sentence


def test_the_command_says_it(tmp_path: Path) -> None:
    make(tmp_path, 10)
    arguments = ["--store", f"file:{tmp_path / 'data'}", "--listen", "kafka+tls://127.0.0.1:0"]
    keystore = tmp_path / "server.pem"
    said = CliRunner().invoke(root, ["doctor", *arguments, "--set", f"ssl.keystore.location={keystore}"])
    assert said.exit_code == 0
    assert f"warn  tls          {keystore}: CN=127.0.0.1 ends on" in said.output
