"""Legal command lines, and the errors for the others. No broker is started."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from korvet_fast.cli import COMMANDS, root
from korvet_fast.cli import broker_options as module
from korvet_fast.cli.broker_options import BrokerOptions, broker_options, parse_endpoint
from korvet_fast.cli.session import parse_bootstrap
from korvet_fast.endpoint import Endpoint
from korvet_fast.store.redis.connection.url import RedisUrl


@pytest.mark.parametrize(
    ("text", "listener"),
    [
        ("kafka://127.0.0.1:9092", Endpoint("kafka", "127.0.0.1", 9092)),
        ("kafka://localhost:0", Endpoint("kafka", "localhost", 0)),
        ("kafka://[::1]:9092", Endpoint("kafka", "::1", 9092)),
        ("text://[::1]:9092", Endpoint("text", "::1", 9092)),
        ("replica+tls://localhost:9192", Endpoint("replica+tls", "localhost", 9192)),
    ],
)
def test_a_listener_is_read_and_written_alike(text: str, listener: Endpoint) -> None:
    assert parse_endpoint(text) == listener
    assert str(listener) == text
    assert parse_endpoint(text.removeprefix("kafka://")) == listener


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("kafka://127.0.0.1", "is not an address"),
        ("kafka://:9092", "is not an address"),
        ("kafka://host:65536", "is not an address"),
        ("kafka://host:port", "is not an address"),
        ("kafka://me@host:9092", "is not an address"),
        ("kafka://host:9092/topic", "is not an address"),
        ("kafka://[::1:9092", "is not an address"),
        ("kafka+ssl://host:9092", r"kafka\+ssl:// is not served by this version"),
        ("https://host:9092", "https:// is not served by this version"),
        ("kafkas://host:9092", "kafkas:// is not served by this version; write kafka://HOST:PORT"),
    ],
)
def test_a_listener_that_cannot_be(text: str, words: str) -> None:
    with pytest.raises(click.BadParameter, match=words):
        parse_endpoint(text)


def test_bootstrap_addresses() -> None:
    assert parse_bootstrap("one:9092, [::1]:9093") == (("one", 9092), ("::1", 9093))
    assert parse_bootstrap("kafka://one:9092,kafka://[::1]:9093") == (("one", 9092), ("::1", 9093))
    with pytest.raises(click.BadParameter, match="another protocol than Kafka's"):
        parse_bootstrap("text://one:9094")
    with pytest.raises(click.BadParameter, match="no address to connect to"):
        parse_bootstrap("one:0")
    with pytest.raises(click.BadParameter, match="write HOST:PORT"):
        parse_bootstrap("one")


def read(*arguments: str, **environment: str) -> BrokerOptions:
    """The options a broker command gets for these arguments."""
    seen: list[BrokerOptions] = []
    command = click.command()(broker_options(seen.append))
    result = CliRunner(env=environment).invoke(command, arguments)
    if result.exit_code:
        raise AssertionError(result.output)
    return seen[0]


def test_no_option_at_all() -> None:
    options = read()
    assert options.store == "file:./korvet-data"
    assert options.place == Path("korvet-data")
    assert [str(each) for each in options.listeners] == ["kafka://127.0.0.1:9092"]
    assert options.advertised == (None,)


def test_a_redis_is_shown_without_its_password() -> None:
    options = read("--store", "redis://me:secret@localhost/2?namespace=shop")
    assert options.store == "redis://me@localhost:6379/2?namespace=shop"
    assert isinstance(options.place, RedisUrl)
    assert (options.place.password, options.place.namespace) == ("secret", "shop")


def test_flag_over_environment_over_file(tmp_path: Path) -> None:
    file = tmp_path / "korvet.toml"
    file.write_text("[num]\npartitions = 2\n[node]\nid = 7\n")
    assert read("--config-file", str(file)).settings.number("num.partitions") == 2
    assert read("--config-file", str(file), KORVET_NUM_PARTITIONS="3").settings.number("num.partitions") == 3
    options = read("--config-file", str(file), "--set", "num.partitions=4", KORVET_NUM_PARTITIONS="3")
    assert options.settings.number("num.partitions") == 4
    assert options.settings.number("node.id") == 7


PLACES = """
store = "file:/from/the/file"
listen = ["kafka://127.0.0.1:1", "127.0.0.1:2"]
bootstrap = "kafka://127.0.0.1:3"
[num]
partitions = 2
"""


def test_places_from_flag_over_environment_over_file(tmp_path: Path) -> None:
    file = tmp_path / "korvet.toml"
    file.write_text(PLACES)
    options = read("--config-file", str(file))
    assert options.store == "file:/from/the/file"
    assert [each.port for each in options.listeners] == [1, 2]
    assert options.settings.number("num.partitions") == 2
    listening = read("--config-file", str(file), KORVET_LISTEN="127.0.0.1:4, text://127.0.0.1:5").listeners
    assert [str(each) for each in listening] == ["kafka://127.0.0.1:4", "text://127.0.0.1:5"]
    assert read("--config-file", str(file), KORVET_STORE="file:here").store == "file:here"
    assert read("--store", "file:there", "--config-file", str(file), KORVET_STORE="file:here").store == "file:there"
    told = read(
        "--listen", "0.0.0.0:1", KORVET_ADVERTISE="broker.example.org:1", KORVET_BOOTSTRAP="unused:1"
    ).advertised
    assert [str(each) for each in told] == ["kafka://broker.example.org:1"]


def test_the_address_of_a_broker_from_the_environment_and_a_file(tmp_path: Path) -> None:
    def said(*arguments: str, **environment: str) -> str:
        result = CliRunner(env=environment).invoke(root, ["topic", "list", *arguments])
        assert result.exit_code == 1, result.output
        return result.output

    file = tmp_path / "korvet.toml"
    file.write_text(PLACES)
    assert "cannot connect to 127.0.0.1:3:" in said("--config-file", str(file))
    assert "cannot connect to 127.0.0.1:4:" in said("--config-file", str(file), KORVET_BOOTSTRAP="kafka://127.0.0.1:4")
    assert "cannot connect to 127.0.0.1:5:" in said("--bootstrap", "127.0.0.1:5", KORVET_BOOTSTRAP="127.0.0.1:4")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("store = 7", "korvet.toml: store is 7, but must be a text or a list of texts"),
        ('store = "nowhere"', "korvet.toml: store: 'nowhere' has no scheme"),
        ('listen = ["kafka://127.0.0.1"]', "korvet.toml: listen: '127.0.0.1' is not an address"),
        ("listen = []", "korvet.toml: listen is [], but must be a text or a list of texts"),
        ('listn = "127.0.0.1:1"', "korvet.toml: there is no setting 'listn'"),
        ("store", "korvet.toml: "),
    ],
)
def test_a_file_that_says_a_place_wrong(tmp_path: Path, text: str, words: str) -> None:
    file = tmp_path / "korvet.toml"
    file.write_text(text)
    result = CliRunner().invoke(root, ["doctor", "--config-file", str(file)])
    assert result.exit_code == 2
    assert words in result.output


def test_listeners_and_what_clients_are_told() -> None:
    options = read(
        "--listen", "kafka://0.0.0.0:1", "--listen", "kafka://[::]:2", *advertise("kafka://a:3", "kafka://b:4")
    )
    assert [each.port for each in options.listeners] == [1, 2]
    assert [str(each) for each in options.advertised] == ["kafka://a:3", "kafka://b:4"]


def test_schemes_are_those_of_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SCHEMES", ("kafka", "toy"))
    listen = ("--listen", "kafka://0.0.0.0:1", "--listen", "toy://0.0.0.0:2")
    options = read(*listen, *advertise("kafka://a:3", "toy://b:4"))
    assert [each.scheme for each in options.listeners] == ["kafka", "toy"]
    with pytest.raises(AssertionError, match=r"toy://b:4 belongs to --listen kafka://0\.0\.0\.0:1, which has"):
        read(*listen, *advertise("toy://b:4", "kafka://a:3"))
    with pytest.raises(AssertionError, match="text:// is not served by this version; write kafka:"):
        read("--listen", "text://127.0.0.1:1")


def advertise(*listeners: str) -> list[str]:
    return [word for listener in listeners for word in ("--advertise", listener)]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--store", "reddis://localhost"], "there is no scheme 'reddis'; did you mean 'redis'?"),
        (["--store", "foo:./b"], "--store: there is no scheme 'foo'; write file:DIRECTORY, for example file:./kor"),
        (["--store", "redis://one,two"], "redis:// takes one host; several are redis+sentinel://"),
        (
            ["--store", "redis://localhost?db=one"],
            "the database must be a number, not 'one'",
        ),
        (["--store", "korvet-data"], "'korvet-data' has no scheme; write file:DIRECTORY"),
        (["--store", "file:"], "write file:DIRECTORY"),
        (["--store", "file:///data"], "write file:DIRECTORY"),
        (["--listen", "kafka://0.0.0.0:9092"], "say which one clients are to be told: --advertise"),
        (advertise("kafka://0.0.0.0:9092"), "nobody can connect to that"),
        (advertise("kafka://host:0"), "nobody can connect to that"),
        (advertise("kafka://a:1", "kafka://b:2"), "--listen gives 1, --advertise 2 addresses: pair them"),
        (
            ["--listen", "kafka://127.0.0.1:1", "--listen", "text://127.0.0.1:1"],
            "--listen gives 127.0.0.1:1 2 times: each listener needs a port of its own",
        ),
        (["--set", "num.partition=4"], "did you mean 'num.partitions'?"),
        (["--set", "num.partitions=many"], "must be a whole number"),
        (["--set", "num.partitions"], "write it as name=value"),
        (["--config-file", "missing.toml"], "does not exist"),
    ],
)
@pytest.mark.parametrize("command", ["serve", "doctor"])
def test_what_cannot_be_is_said_in_words_and_ends_in_2(command: str, arguments: list[str], words: str) -> None:
    result = CliRunner().invoke(root, [command, *arguments])
    assert result.exit_code == 2
    assert words in " ".join(result.output.split())


@pytest.mark.parametrize(
    ("store", "words"),
    [
        ("korvet-data", "KORVET_STORE: 'korvet-data' has no scheme"),
        ("file:", "KORVET_STORE 'file:': write file:DIRECTORY"),
        (
            "redis://h?passwd_file=x",
            "KORVET_STORE: there is no option 'passwd_file'; did you mean 'password_file'?",
        ),
    ],
)
def test_a_store_in_the_environment_is_refused_by_its_name(store: str, words: str) -> None:
    result = CliRunner().invoke(root, ["doctor"], env={"KORVET_STORE": store})
    assert result.exit_code == 2
    assert words in " ".join(result.output.split())


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["clustr", "list"], "has no command 'clustr'; did you mean 'cluster'?"),
        (["topic", "lst"], "topic has no command 'lst'; did you mean 'list'?"),
        (["start"], "has no command 'start'; did you mean 'serve'?"),
        (["run"], "has no command 'run'; did you mean 'serve'?"),
        (["server"], "has no command 'server'; did you mean 'serve'?"),
        (["stop"], "has no command 'stop'; there are serve, topic, "),
        (["topic", "new"], "topic has no command 'new'; did you mean 'create'?"),
        (["topic", "start"], "topic has no command 'start'; there are alter, create, "),
        (["topic", "create", "t", "--partitions", "0"], "0 is not in the range"),
        (["topic", "create", "t", "--set", "retention.ms"], "is not NAME=VALUE, such as retention.ms=86400000"),
        (["topic", "alter", "t"], "nothing to alter"),
        (["topic", "delete"], "Missing argument"),
        (["consume", "t", "--from", "yesterday"], "is none of: earliest, latest, an offset"),
        (["consume", "t", "--from", "-5"], "is none of: earliest, latest, an offset"),
        (["consume", "t", "--count", "0"], "0 is not in the range"),
        (["produce", "t", "missing.txt"], "No such file"),
        (["produce", "t", "--acks", "0"], "'0' is not one of"),
        (["produce", "t", "--rate", "0"], "0.0 is not in the range"),
        (["produce", "t", "--bootstrap", "host"], "write HOST:PORT"),
    ],
)
def test_client_commands_refuse_alike(arguments: list[str], words: str) -> None:
    result = CliRunner().invoke(root, arguments)
    assert result.exit_code == 2
    assert words in " ".join(result.output.split())


def test_nobody_listens() -> None:
    result = CliRunner().invoke(root, ["topic", "list", "--bootstrap", "127.0.0.1:1"])
    assert result.exit_code == 1
    assert "cannot connect to 127.0.0.1:1: Connection refused" in result.output
    assert "korvet-fast serve" in result.output


def walk(command: click.Command, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """The words of every command there is, and the command."""
    yield path, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            found = command.get_command(context, name)
            assert found is not None
            yield from walk(found, (*path, name))


def test_config_is_a_setting_but_where_the_file_is_the_brokers_own() -> None:
    meanings = {
        " ".join(path): parameter.metavar
        for path, command in walk(root)
        for parameter in command.params
        if "--config" in parameter.opts
    }
    files = {command for command, metavar in meanings.items() if metavar == "FILE"}
    assert files == {"serve", "doctor", "import-07", "export-07"}
    assert {meanings[command] for command in meanings.keys() - files} == {"NAME=VALUE"}


@pytest.mark.parametrize("words", [words for words, _ in walk(root)][1:], ids=" ".join)
def test_every_command_explains_itself(words: tuple[str, ...]) -> None:
    result = CliRunner().invoke(root, [*words, "--help"])
    assert result.exit_code == 0
    assert "Examples:" in result.output
    assert f"korvet-fast {' '.join(words)}" in result.output.split("Examples:")[1]


def test_the_list_of_commands_is_true() -> None:
    for name, sentence in COMMANDS.items():
        command = root.get_command(click.Context(root), name)
        assert command is not None
        assert sentence


def test_version_and_help_need_no_broker() -> None:
    result = CliRunner().invoke(root, ["--version"])
    assert result.output.startswith("korvet-fast 0.")
    assert all(name in CliRunner().invoke(root, []).output for name in COMMANDS)


def test_serving_imports_neither_the_client_nor_what_draws() -> None:
    script = "import sys, korvet_fast.cli.serve; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    loaded = done.stdout.split()
    assert "korvet_fast.net.serve" in loaded
    assert not [name for name in loaded if name.startswith(("rich", "korvet_fast.client", "numpy", "redis"))]
