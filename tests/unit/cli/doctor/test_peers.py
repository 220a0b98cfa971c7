"""What the doctor says of the peers and their secret: `serve` would refuse to start where it finds fault."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from korvet_fast.cli.doctor import command
from korvet_fast.cli.doctor.finding import Verdict
from korvet_fast.cli.doctor.peers import examine_peers
from korvet_fast.config import Settings, read_settings
from korvet_fast.endpoint import Endpoint

PEERS = "replication.peers=1@127.0.0.1:9191,2@127.0.0.1:9192,3@127.0.0.1:9193"
LISTENERS = (Endpoint("replica", "127.0.0.1", 9191),)


def settings_with(file: Path, peers: str = PEERS) -> Settings:
    return read_settings([peers, "node.id=1", f"replication.secret.file={file}"])


def examine(settings: Settings) -> list[tuple[Verdict, str]]:
    return [(finding.verdict, finding.sentence) for finding in examine_peers(settings, LISTENERS)]


def test_without_peers_nothing_is_said() -> None:
    assert list(examine_peers(read_settings([]), [])) == []


def test_a_secret_that_only_the_brokers_know(tmp_path: Path) -> None:
    file = tmp_path / "secret"
    file.write_text("x" * 40)
    file.chmod(0o600)
    assert examine(settings_with(file)) == [(Verdict.GOOD, f"broker 1 copies 2, 3; {file} has a secret")]
    file.chmod(0o644)
    assert examine(settings_with(file))[1] == (
        Verdict.WARN,
        f"everybody on this machine can read {file}, and pass for a broker: chmod o-rwx {file}",
    )


@pytest.mark.parametrize(("content", "fault"), [(None, "No such file or directory"), ("short", "has 5 characters")])
def test_a_secret_that_cannot_be_used(tmp_path: Path, content: str | None, fault: str) -> None:
    file = tmp_path / "secret"
    if content is not None:
        file.write_text(content)
    ((verdict, sentence),) = examine(settings_with(file))
    assert verdict is Verdict.BAD
    assert sentence.startswith(f"replication.secret.file: {file}") and fault in sentence


def test_the_command_says_so_and_fails(tmp_path: Path) -> None:
    words = ["--store", f"file:{tmp_path / 'data'}", "--listen", "kafka://127.0.0.1:0"]
    for setting in (PEERS, "node.id=1", f"replication.secret.file={tmp_path / 'none'}"):
        words += ["--set", setting]
    done = CliRunner().invoke(command, words)
    assert done.exit_code == 1
    assert f"bad   peers        replication.secret.file: {tmp_path / 'none'}: No such file or directory" in done.output
