"""Kafka's own tools inside TLS with files of `korvet-fast certs`, and names of clients beside Java's and Kafka's."""

import subprocess
from pathlib import Path
from random import Random

from click.testing import CliRunner
from cryptography import x509

from broker_process import BrokerProcess
from compat.java_tools import CONSUMER, PRODUCER, SOURCES, Tools, java
from korvet_fast.cli import root
from korvet_fast.net.principal import PrincipalRules
from korvet_fast.net.x509 import read_subject
from redis_server import free_port
from subjects import SUBJECTS, certify

PROPERTIES = """\
security.protocol=SSL
ssl.truststore.type=PEM
ssl.truststore.location={place}/ca.pem
ssl.keystore.type=PEM
ssl.keystore.location={place}/client.pem
"""
RULES = (
    "DEFAULT",
    r"RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/L,RULE:^.*[Cc][Nn]=([a-zA-Z0-9.]*).*$/$1/U,DEFAULT",
    r"RULE:^CN=(.*?)(?:,.*)?$/a\/b \$ $1$2/U",
)


def test_kafkas_tools_with_certificates(tmp_path: Path) -> None:
    place, port = tmp_path / "certs", free_port()
    assert CliRunner().invoke(root, ["certs", str(place), "--client", "tools"]).exit_code == 0
    given = tmp_path / "client.properties"
    given.write_text(PROPERTIES.format(place=place))
    settings = (f"ssl.keystore.location={place}/server.pem", f"ssl.truststore.location={place}/ca.pem")
    listen = ("--listen", f"kafka+tls://127.0.0.1:{port}")
    with BrokerProcess(tmp_path / "data", *settings, "ssl.client.auth=required", arguments=listen) as broker:
        tools = Tools(broker, f"127.0.0.1:{port}")
        tools.topics("--create", "--topic", "encrypted", "--command-config", str(given))
        tools.run(PRODUCER, "--topic", "encrypted", "--producer.config", str(given), stdin="one\ntwo\n")
        wanted = ("--topic", "encrypted", "--from-beginning", "--max-messages", "2")
        assert tools.run(CONSUMER, *wanted, "--consumer.config", str(given)).splitlines()[:2] == ["one", "two"]


def test_names_are_those_of_java_and_kafka(tmp_path: Path) -> None:
    certificates = [certificate for certificate, _ in SUBJECTS] + _random(30)
    files = []
    for number, certificate in enumerate(certificates):
        files.append(tmp_path / f"{number}.der")
        files[-1].write_bytes(certificate)
    for text in RULES:
        command = [*java(), str(SOURCES / "Principals.java"), text, *map(str, files)]
        done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", timeout=280)
        assert done.returncode == 0, done.stderr
        rules = PrincipalRules(text)
        expected = [line for each in certificates for line in (read_subject(each), _name(rules, each))]
        assert done.stdout.splitlines() == expected


def _name(rules: PrincipalRules, certificate: bytes) -> str:
    try:
        return rules.name(certificate).removeprefix("User:")
    except ValueError:
        return "no rule"


def _random(count: int) -> list[bytes]:
    """Subjects of one to four names with characters that are escaped, and with some that are not."""
    chosen = Random(22)
    kinds = [getattr(x509.NameOID, name) for name in ("COMMON_NAME", "ORGANIZATIONAL_UNIT_NAME", "EMAIL_ADDRESS")]
    return [
        certify(
            *(
                (kind, "".join(chosen.choice('ab, =+<>#;"\\') for _ in range(chosen.randint(1, 9))))
                for kind in chosen.choices(kinds, k=chosen.randint(1, 4))
            )
        )
        for _ in range(count)
    ]
