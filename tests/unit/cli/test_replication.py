"""Listeners for other brokers that do not go with replication.peers, or with what these connect by."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from korvet_fast.cli import root

PEERS = ("replication.peers=1@127.0.0.1:9191,2@127.0.0.1:9192", "node.id=1")
SSL = "security.inter.broker.protocol=SSL"


@pytest.mark.parametrize(
    ("listener", "settings", "words"),
    [
        (None, PEERS, "need a listener: --listen replica://127.0.0.1:9191"),
        (None, (*PEERS, SSL), "need a listener: --listen replica+tls://127.0.0.1:9191"),
        (
            "replica://127.0.0.1:0",
            (*PEERS, SSL),
            f"has no TLS, and with {SSL} brokers connect to each other inside TLS",
        ),
        (
            "replica+tls://127.0.0.1:0",
            PEERS,
            f"is inside TLS, and brokers connect to each other without it: --set {SSL}",
        ),
        ("replica+tls://127.0.0.1:0", (), "is for replication.peers, and none are set"),
        (None, (SSL,), f"{SSL} is for replication.peers, and none are set"),
    ],
    ids=["none", "none with TLS", "without TLS", "with TLS", "no peers", "TLS for nobody"],
)
def test_what_does_not_go_together_is_said_at_the_start_and_by_doctor(
    tmp_path: Path, listener: str | None, settings: tuple[str, ...], words: str
) -> None:
    secret = tmp_path / "secret"
    secret.write_text("x" * 40)
    listeners = ["kafka://127.0.0.1:0", *([listener] if listener else [])]
    given = ["--store", f"file:{tmp_path / 'data'}", *(word for one in listeners for word in ("--listen", one))]
    for setting in (*settings, f"replication.secret.file={secret}"):
        given += ["--set", setting]
    for command in ("serve", "doctor"):
        done = CliRunner().invoke(root, [command, *given])
        assert done.exit_code == 1
        assert words in " ".join(done.output.split()), done.output
    assert not (tmp_path / "data").exists()
