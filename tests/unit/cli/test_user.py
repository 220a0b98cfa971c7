"""`user`: in a store that no broker uses, and in a cluster by a client that has logged in."""

import json
from pathlib import Path

from click.testing import CliRunner, Result

from broker_process import BrokerProcess
from korvet_fast.cli import root
from redis_server import free_port


def user(*arguments: str) -> Result:
    return CliRunner().invoke(root, ["user", *arguments])


def write_password(directory: Path, name: str, password: str) -> str:
    file = directory / f"{name}.txt"
    file.write_text(password)
    return str(file)


def test_users_before_the_broker_starts_and_while_it_runs(tmp_path: Path) -> None:
    store = f"file:{tmp_path / 'data'}"
    ann = write_password(tmp_path, "ann", "a pear\r\n")
    assert user("list", "--store", store).output == ""
    assert user("add", "ann", "--password-file", ann, "--store", store).exit_code == 0
    assert user("list", "--store", store).output == "ann\tSCRAM-SHA-256\t4096\nann\tSCRAM-SHA-512\t4096\n"
    port = free_port()
    with BrokerProcess(tmp_path / "data", arguments=("--listen", f"kafka+sasl://127.0.0.1:{port}")):
        running = user("list", "--store", store)
        assert running.exit_code == 1
        assert "is in use by the process" in running.output
        given = tmp_path / "client.properties"
        given.write_text(
            "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=SCRAM-SHA-256\nsasl.username=ann\nsasl.password=a pear\n"
        )
        where = ("--bootstrap", f"127.0.0.1:{port}", "--command-config", str(given))
        bob = write_password(tmp_path, "bob", "plums")
        added = user(
            "add", "b\x1bob", "--password-file", bob, "--mechanism", "SCRAM-SHA-512", "--iterations", "8192", *where
        )
        assert (added.exit_code, added.output) == (0, "user b\\x1bob logs in by SCRAM-SHA-512\n")
        listed = json.loads(user("list", "--json", *where).output)
        assert [(row["user"], row["mechanism"], row["iterations"]) for row in listed] == [
            ("ann", "SCRAM-SHA-256", 4096),
            ("ann", "SCRAM-SHA-512", 4096),
            ("b\x1bob", "SCRAM-SHA-512", 8192),
        ]
        assert user("remove", "b\x1bob", *where).output == "user b\\x1bob logs in no more\n"
        gone = user("remove", "b\x1bob", *where)
        assert (gone.exit_code, "there is no user" in gone.output) == (1, True)
        given.write_text(given.read_text().replace("a pear", "a fig"))
        wrong = user("list", *where)
        assert wrong.exit_code == 1
        assert "Authentication failed due to invalid credentials" in wrong.output
        plain = user("list", "--bootstrap", f"127.0.0.1:{port}")
        assert plain.exit_code == 1
    assert user("remove", "ann", "--store", store).exit_code == 0
    assert "there is no user" in user("remove", "ann", "--store", store).output


def test_files_that_hold_no_password(tmp_path: Path) -> None:
    for content in (b"", b"\n", b"two\nlines\n", b"a\0b", b"\xff", b"x" * 1025):
        file = tmp_path / "password.txt"
        file.write_bytes(content)
        refused = user("add", "ann", "--password-file", str(file), "--store", f"file:{tmp_path / 'data'}")
        assert refused.exit_code == 2
        assert "--password-file" in refused.output
    assert not (tmp_path / "data").exists()
