"""Warnings of `serve` and `doctor` about passwords that others can read and listeners that others can reach."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from korvet_fast.cli import root
from redis_server import RedisServer
from tls_world import Authority

SECRET = "s3cret"
ON_COMMAND_LINE = "the password of the store is on the command line"
OPEN = "can read, write and delete everything"


@pytest.fixture
def locked(start_redis: Callable[..., RedisServer]) -> str:
    """Where a Redis is that wants the password."""
    return f"127.0.0.1:{start_redis(appendonly='yes', requirepass=SECRET).port}"


def serve(*arguments: str, **environment: str) -> tuple[str, list[str]]:
    """The command line of a broker as others see it, and its log: the level and the text of each line."""
    listen = () if "--listen" in arguments else ("--listen", "kafka://127.0.0.1:0")
    command = [sys.executable, "-m", "korvet_fast", "serve", *listen, *arguments]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=os.environ | environment) as process:
        assert process.stderr is not None
        said = []
        while "ready kafka://" not in "".join(said[-1:]):
            said.append(process.stderr.readline())
            assert said[-1], said
        seen = Path(f"/proc/{process.pid}/cmdline").read_text()
        process.send_signal(signal.SIGTERM)
        said += process.stderr.readlines()
    assert process.returncode == 0, said
    found = [json.loads(line) for line in said]
    return seen, [f"{line['level']}: {line['message']}" for line in found]


def doctor(*arguments: str, **environment: str) -> str:
    listen = () if "--listen" in arguments else ("--listen", "kafka://127.0.0.1:0")
    return CliRunner(env=environment).invoke(root, ["doctor", *listen, *arguments]).output


def warnings(lines: list[str]) -> list[str]:
    return [line for line in lines if line.startswith("warning: ")]


def test_finding_4_2_the_store_and_its_password_may_come_from_the_environment(locked: str) -> None:
    given = {"KORVET_STORE": f"redis://:{SECRET}@{locked}"}
    seen, log = serve(**given)
    assert SECRET not in seen
    assert any(line.startswith("info: ready") and line.endswith(f"store=redis://{locked}") for line in log)
    assert (warnings(log), SECRET in str(log)) == ([], False)
    said = doctor(**given)
    assert f"ok    redis        {locked} is Redis" in said
    assert (ON_COMMAND_LINE in said, SECRET in said) == (False, False)


def test_finding_4_2_the_password_may_come_from_a_file(locked: str, tmp_path: Path) -> None:
    file = tmp_path / "password"
    file.write_text(f"{SECRET}\nand a second line\n")
    file.chmod(0o640)
    store = ("--store", f"redis://{locked}?password_file={file}")
    assert warnings(serve(*store)[1]) == []
    file.chmod(0o644)
    (warning,) = warnings(serve(*store)[1])
    assert warning == f"warning: everybody on this machine can read {file}: chmod o-rwx {file}"
    said = doctor(*store)
    assert f"warn  password     everybody on this machine can read {file}" in said
    assert f"ok    redis        {locked} is Redis" in said


def test_finding_4_2_a_password_on_the_command_line_is_warned_of(locked: str) -> None:
    store = ("--store", f"redis://:{SECRET}@{locked}")
    (warning,) = warnings(serve(*store)[1])
    assert ON_COMMAND_LINE in warning
    assert "KORVET_STORE" in warning
    assert SECRET not in warning
    assert f"warn  password     {ON_COMMAND_LINE}" in doctor(*store)


@pytest.mark.parametrize("secret", ["password", "sentinel_password"])
def test_finding_4_2_so_is_one_among_the_options_of_a_url(secret: str) -> None:
    address = f"redis+sentinel://127.0.0.1:1/name?{secret}={SECRET}"
    assert ON_COMMAND_LINE in doctor("--store", address)
    assert ON_COMMAND_LINE not in doctor(KORVET_STORE=address)
    assert ON_COMMAND_LINE not in doctor("--store", "redis+sentinel://127.0.0.1:1/name?sentinel_username=me")


@pytest.mark.parametrize(
    ("content", "options", "words"),
    [
        (None, "", "cannot be read: No such file or directory"),
        (b"", "", "its first line must be the password, of 1 to 4096 bytes"),
        (b"\nlater\n", "", "its first line must be the password, of 1 to 4096 bytes"),
        (b"x" * 5000, "", "its first line must be the password, of 1 to 4096 bytes"),
        (b"hidden\xff\n", "", "its first line is no UTF-8"),
        (b"hidden\n", "&password=hidden", "there are two passwords, in the URL and in password_file: leave one out"),
    ],
    ids=["missing", "empty", "empty line", "endless", "no text", "two"],
)
def test_a_password_file_that_cannot_be(tmp_path: Path, content: bytes | None, options: str, words: str) -> None:
    file = tmp_path / "password"
    if content is not None:
        file.write_bytes(content)
    result = CliRunner().invoke(root, ["serve", "--store", f"redis://127.0.0.1:1?password_file={file}{options}"])
    assert result.exit_code == 2
    assert words in " ".join(result.output.split())
    assert "hidden" not in result.output


def test_a_directory_is_no_password_file(tmp_path: Path) -> None:
    result = CliRunner().invoke(root, ["serve", "--store", f"redis://127.0.0.1:1?password_file={tmp_path}"])
    assert result.exit_code == 2
    assert "cannot be read: Is a directory" in " ".join(result.output.split())


ANYWHERE = ("--listen", "kafka://0.0.0.0:0", "--advertise", "kafka://127.0.0.1:9")


def test_finding_4_5_serve_warns_of_a_listener_beyond_loopback(tmp_path: Path) -> None:
    store = ("--store", f"file:{tmp_path}")
    (warning,) = warnings(serve(*store, *ANYWHERE)[1])
    assert warning.startswith("warning: whoever reaches kafka://0.0.0.0:0 can read, write and delete everything")
    assert "firewall" in warning
    assert warnings(serve(*store)[1]) == []


def test_a_listener_with_tls_is_exposed_unless_it_asks_for_certificates(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    listen = ("--listen", "kafka+tls://0.0.0.0:0", "--advertise", "kafka+tls://127.0.0.1:9", "--store", "file:x")
    settings = (
        "--set",
        f"ssl.keystore.location={authority.issue()}",
        "--set",
        f"ssl.truststore.location={authority.file}",
    )
    said = doctor(*listen, *settings)
    assert f"{OPEN}: listen on 127.0.0.1, let a firewall" in said
    assert "or choose ssl.client.auth=required" in said
    assert OPEN not in doctor(*listen, *settings, "--set", "ssl.client.auth=required")
    assert "or choose kafka+tls:// and ssl.client.auth=required" in doctor(*ANYWHERE, "--store", "file:x")


def test_a_listener_without_an_authorizer_is_warned_of_whoever_its_clients_are(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    listen = ("--listen", "kafka+tls://0.0.0.0:0", "--advertise", "kafka+tls://127.0.0.1:9", "--store", "file:x")
    files = (f"ssl.keystore.location={authority.issue()}", f"ssl.truststore.location={authority.file}")
    settings = [word for one in (*files, "ssl.client.auth=required") for word in ("--set", one)]
    assert "every client with a certificate may do everything" in doctor(*listen, *settings)
    assert "may do everything" not in doctor(*listen, *settings, "--set", "authorizer=acl")
    said = doctor(*ANYWHERE, "--store", "file:x", "--set", "authorizer=acl")
    assert OPEN not in said


def test_a_listener_of_brokers_is_warned_of_for_who_is_on_the_way() -> None:
    listen = (
        "--listen",
        "kafka://127.0.0.1:0",
        "--listen",
        "replica://0.0.0.0:0",
        "--advertise",
        "kafka://127.0.0.1:9",
    )
    said = doctor(*listen, "--advertise", "replica://127.0.0.1:9", "--store", "file:x")
    assert "warn  listen       replica://0.0.0.0:0 has no TLS, so what brokers send each other can be read" in said
    assert "listen on replica+tls:// and set security.inter.broker.protocol=SSL" in said
    assert OPEN not in said
    encrypted = [word.replace("replica:", "replica+tls:") for word in (*listen, "--advertise", "replica://127.0.0.1:9")]
    assert "warn  listen" not in doctor(*encrypted, "--store", "file:x")


def test_a_listener_with_logins_is_warned_of_without_tls_and_without_an_authorizer() -> None:
    listen = ("--listen", "kafka+sasl://0.0.0.0:0", "--advertise", "kafka+sasl://127.0.0.1:9", "--store", "file:x")
    said = doctor(*listen)
    assert "every client that logs in may do everything on kafka+sasl://0.0.0.0:0" in said
    assert "so all records can be read on the way: listen on kafka+sasl+tls://" in said
    said = doctor(*listen, "--set", "authorizer=acl", "--set", "sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-256")
    assert "may do everything" not in said
    assert "so passwords can be read on the way: listen on kafka+sasl+tls://" in said


def test_tokens_are_warned_of_without_tls_and_unsecured_ones_everywhere() -> None:
    listen = ("--listen", "kafka+sasl://0.0.0.0:0", "--advertise", "kafka+sasl://127.0.0.1:9", "--store", "file:x")
    said = doctor(*listen, "--set", "sasl.enabled.mechanisms=PLAIN,OAUTHBEARER")
    assert "so passwords and tokens can be read on the way: listen on kafka+sasl+tls://" in said
    testing = ("--set", "sasl.oauthbearer.unsecured.tokens.for.testing=true", "--store", "file:x")
    for scheme in ("kafka+sasl", "kafka+sasl+tls"):
        own = ("--listen", f"{scheme}://127.0.0.1:0", *testing)
        said = doctor(*own, "--set", "sasl.enabled.mechanisms=OAUTHBEARER")
        assert f"warn  listen       whoever reaches {scheme}://127.0.0.1:0 may log in under every name" in said
        assert "under every name" not in doctor(*own)  # nobody may log in by a token at all


def test_serve_warns_of_unsecured_tokens_at_each_start(tmp_path: Path) -> None:
    settings = ("sasl.enabled.mechanisms=OAUTHBEARER", "sasl.oauthbearer.unsecured.tokens.for.testing=true")
    given = [word for one in settings for word in ("--set", one)]
    listen = ("--listen", "kafka+sasl://127.0.0.1:0", "--listen", "kafka://127.0.0.1:0")
    (warning,) = warnings(serve("--store", f"file:{tmp_path}", *listen, *given)[1])
    assert "may log in under every name, super users' too" in warning
    assert "only for tests of clients; set sasl.oauthbearer.jwks.endpoint.url instead" in warning


def test_serve_says_why_certificates_cannot_be_used(tmp_path: Path) -> None:
    given = ["serve", "--store", f"file:{tmp_path / 'data'}", "--listen", "kafka+tls://127.0.0.1:0"]
    result = CliRunner().invoke(root, given)
    assert result.exit_code == 1
    assert "a listener with TLS needs a certificate" in result.output
    assert not (tmp_path / "data").exists()


def test_finding_4_5_doctor_warns_of_it_too(tmp_path: Path) -> None:
    store = ("--store", f"file:{tmp_path}")
    said = doctor(*store, *ANYWHERE)
    assert f"warn  listen       whoever reaches kafka://0.0.0.0:0 {OPEN}" in said
    for loopback in ("127.0.0.1", "127.1.2.3", "localhost"):
        assert OPEN not in doctor(*store, "--listen", f"kafka://{loopback}:0")


def test_what_redis_asks_is_no_sentence_with_two_ends(start_redis: Callable[..., RedisServer]) -> None:
    """It answers a password that nobody asked for with a question, which stays one."""
    said = doctor("--store", f"redis://:{SECRET}@127.0.0.1:{start_redis(appendonly='yes').port}")
    assert "Are you sure your configuration is correct? A broker could not start." in said, said
