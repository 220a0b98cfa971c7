"""Every command, asked in ways that cannot be: one sentence, with an exit code, and nothing that looks like a bug.

A row is a command line. `B` is a broker's address, `T` a topic of two partitions there and `ONE` a topic of one, `FILE`
a file of text, `DIR` a directory, `SECRET` a file of a secret, `NOBODY` an address without a broker; `<words` is a file
of these words.
"""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from broker_process import BrokerProcess
from korvet_fast.cli import root
from redis_server import free_port

USAGE = """
nothing
topc
topic lst
topic list --jsn
topic list extra
topic create
topic create t --partitions
topic create t --partitions many
topic create t --partitions 0
topic create t --partitions -1
topic create t --partitions 99999999999999
topic create t --replication-factor 0
topic create t --replication-factor 32768
topic create t --layout rows
topic create t --set retention.ms
topic create t --set =1
topic create t --config-file missing.toml
topic create t --bootstrap :9092
topic describe
topic describe t --cont
topic alter
topic alter t
topic alter t --partitions 99999999999999
topic alter t --set 1
topic delete
topic delete --all
group
group lst
group list --state Sleeping
group list --type modern
group describe
group reset g
group reset g --to earliest
group reset g --to yesterday --all-topics
group reset g --to earliest --all-topics --topic t
group reset g --to -1 --all-topics
group reset g --to 2026-13-01 --all-topics
group reset g --to 99999999999999999999 --all-topics
group reset g --topic t: --to earliest
group reset g --topic t:a --to earliest
group reset g --topic :0 --to earliest
group reset --to earliest
group delete
partition
partition lead
partition lead t
partition lead t 0
partition lead t zero --broker 1
partition lead t -1 --broker 1
partition lead t 0 --broker one
partition lead t 0 --broker 1 --secret-file FILE
partition lead @registry 0 --broker 1 --secret-file missing
produce
produce t missing.txt
produce t DIR
produce t --acks 0
produce t --acks some
produce t --compression brotli
produce t --rate 0
produce t --rate fast
produce t --partition -1
produce t --partition x
produce t --header source
produce t --header =web
produce t --key-separator ''
produce t --key a --json
produce t --key a --key-separator :
produce t --json --key-separator :
produce t --keyy a
produce t a b
produce t --bootstrap text://127.0.0.1:1
produce t --bootstrap 127.0.0.1
produce t --bootstrap 127.0.0.1:99999
produce t --bootstrap 127.0.0.1:0
produce t --bootstrap ''
consume
consume t u
consume t --from yesterday
consume t --from -5
consume t --from 99999999999999999999
consume t --from 2026-02-30
consume t --from 0001-01-01T00:00:00+14:00 --count none
consume t --count 0
consume t --count all
consume t --partition -1
consume t --format %x
consume t --format %
consume t --format '\\q'
consume t -f %s --json
consume t --json --key-separator :
consume t --group g --partition 0
consume t --until-endd
cluster
cluster inf
cluster info extra
cluster info --bootstrap '[::1:9092'
config
config lst
config list --topic t --broker 1
config list --topic t --loggers
config list --broker one
config describe
config set
config set retention.ms
config set =1
config set --unset
completion
completion tcsh
ingest
ingest a.csv
ingest a.xyz --topic t
ingest a.csv --topic t --option nullValue
ingest a.csv --topic t --conf x
ingest a.csv --topic t --compression brotli
export
export t
export t --to csv out
export t --to parquet
export t --to parquet out --every 0
export t --to parquet out --every soon
export t --to parquet out --most 0
export t --to parquet out --checkpoint c
export t --to parquet out --from never
import-07
import-07 missing
export-07
demo-cluster extra
doctor extra
doctor --store nowhere
doctor --store file:
doctor --store reddis://localhost
doctor --store redis://localhost?namespase=x
doctor --store redis://one,two
doctor --listen kafka://0.0.0.0:9092
doctor --listen http://127.0.0.1:1
doctor --listen kafka://127.0.0.1:1 --listen text://127.0.0.1:1
doctor --listen kafka://127.0.0.1:1 --advertise kafka://a:1 --advertise kafka://b:1
doctor --advertise kafka://host:0
doctor --set num.partition=4
doctor --set num.partitions=many
doctor --set num.partitions
doctor --config-file FILE
doctor --config-file DIR
doctor --config num.partitions=4
doctor --zookeeper 127.0.0.1:2181
acl
acl lst
acl add
acl add --allow User:ann
acl add --allow User:ann --operation read
acl add --allow User:ann --operation any --topic t
acl add --allow User:ann --operation read --topic t --host
acl list extra
acl list --operation some
acl remove
acl remove --all --topic t
user
user lst
user add
user add ann
user add ann --password-file missing.txt
user add ann --password-file FILE --mechanism PLAIN
user add ann --password-file FILE --iterations 4095
user add '' --password-file FILE
user add ann --password-file FILE --store nonsense
user list extra
user remove
certs
certs d d
certs d --days 0
certs d --host 'a b'
serve extra
serve --lisen 127.0.0.1:1
serve --store korvet-data
serve --set nonsense=1
serve --set max.connections=-1
serve --config-file missing.toml
serve --zookeeper ''
"""

FAILURE = """
topic list --bootstrap NOBODY
topic describe nobody B
topic describe 'a b' B
topic create T B
topic create 'a b' B
topic create '' B
topic create new --set retention.m=1 B
topic create new --set retention.ms=soon B
topic create new --set storage.layout=rows B
topic create new --layout entries B
topic create new --replication-factor 3 B
topic create new --partitions 2147483647 B
topic alter T --partitions 1 B
topic alter ONE --partitions 1 B
topic alter T --set retention.ms=soon B
topic alter T --set nonsense=1 B
topic alter T --unset nonsense B
topic alter T --unset retention.ms B
topic alter nobody --set retention.ms=1 B
topic alter nobody --unset retention.ms B
topic delete nobody B
topic delete nobody nothing B
group list --bootstrap NOBODY
group describe nobody B
group describe '' B
group reset g --all-topics --to earliest B
group reset g --topic T:7 --to earliest B
group reset g --topic nobody --to earliest B
group reset g --topic T --to 99 B
group delete nobody B
partition lead nobody 0 --broker 1 B
partition lead T 7 --broker 1 B
partition lead T 0 --broker 7 B
partition lead @registry 0 --broker 1 --secret-file FILE B
partition lead @registry 0 --broker 1 --secret-file SECRET B
partition lead @registry 0 --broker 1 --secret-file SECRET --bootstrap NOBODY
produce T --partition 7 B
produce T --json B <nonsense
produce T --json B <[1]
produce T --json B <1
produce T --json B <{"vale": "x"}
produce T --json B <{"value": 1}
produce T --json B <{"value": {"base64": "?"}}
produce T --json B <{"value": "x", "partition": -1}
produce T --json B <{"value": "x", "partition": 7}
produce T --json B <{"value": "x", "timestamp": "now"}
produce T --json B <{"value": "x", "headers": 7}
produce T --json B <{"value": "x", "headers": [["a"]]}
produce T --key-separator : B <line
produce 'a b' B <line
consume nobody B
consume T --partition 7 B
consume nobody --group g B
consume '' B
cluster info --bootstrap NOBODY
config list --topic nobody B
config list --broker 7 B
config describe nonsense B
config describe retention.m --topic T B
config set num.partitions=3 B
config set nonsense=1 --topic T B
config set retention.ms=soon --topic T B
config set --unset nonsense --topic T B
config set nonsense=debug --loggers --broker 7 B
config set korvet_fast=dbug --loggers B
acl list B
acl list --bootstrap NOBODY
acl add --allow ann --operation read --topic t B
acl remove --all B
user add ann --password-file FILE --bootstrap NOBODY
user list --bootstrap NOBODY
user remove nobody B
user remove '' B
ingest a.csv --topic t --bootstrap NOBODY
certs /dev/null/x
export t --to parquet out --bootstrap NOBODY
"""


def rows(table: str) -> list[str]:
    return table.strip().splitlines()


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    with BrokerProcess(tmp_path_factory.mktemp("wrong") / "data", "durability=written") as process:
        for topic, partitions in (("T", "2"), ("ONE", "1")):
            create = ["topic", "create", topic, "--partitions", partitions, "--bootstrap", process.bootstrap]
            made = CliRunner().invoke(root, create)
            assert made.exit_code == 0, made.output
        yield process


@pytest.fixture(scope="module")
def other_ports(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """Addresses of a broker where Kafka's protocol is not spoken, by scheme."""
    ports = {scheme: f"127.0.0.1:{free_port()}" for scheme in ("http", "text", "legacy")}
    listen = [word for scheme, address in ports.items() for word in ("--listen", f"{scheme}://{address}")]
    with BrokerProcess(tmp_path_factory.mktemp("others") / "data", arguments=listen):
        yield ports


@pytest.fixture(scope="module")
def names(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    directory = tmp_path_factory.mktemp("inputs")
    file = directory / "text"
    file.write_text("no TOML\n")
    secret = directory / "secret"
    secret.write_text("what only brokers know\n")
    return {"FILE": [str(file)], "SECRET": [str(secret)], "DIR": [str(directory)], "NOBODY": ["127.0.0.1:1"]}


def ask(row: str, names: dict[str, list[str]]) -> tuple[int, str]:
    """The exit code of a row's command, and what it said."""
    command, typed, words = row.partition(" <")
    arguments = [word for given in shlex.split(command) for word in names.get(given, [given])]
    if typed:
        Path("typed").write_text(words)
        arguments.append("typed")
    result = CliRunner().invoke(root, arguments, prog_name="korvet-fast")
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result.exit_code, result.output


def test_there_are_enough() -> None:
    assert len(rows(USAGE) + rows(FAILURE)) >= 120
    assert len({*rows(USAGE), *rows(FAILURE)}) == len(rows(USAGE) + rows(FAILURE))


def test_no_command_is_left_out() -> None:
    asked = [row.split() for row in rows(USAGE)]
    context = click.Context(root)
    for name in root.list_commands(context):
        assert any(words[0] == name for words in asked), name
        command = root.get_command(context, name)
        if isinstance(command, click.Group):
            for below in command.list_commands(context):
                assert any(words[:2] == [name, below] for words in asked), (name, below)


@pytest.mark.parametrize("row", rows(USAGE))
def test_what_cannot_be_asked(
    row: str, names: dict[str, list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    code, said = ask(row, names)
    assert code == 2, said
    check(said)


@pytest.mark.parametrize("row", rows(FAILURE))
def test_what_fails(
    row: str, broker: BrokerProcess, names: dict[str, list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    code, said = ask(row, names | {"B": ["--bootstrap", broker.bootstrap]})
    assert code == 1, said
    check(said)


DOUBLED = re.compile(
    r"(?<!\.)\.\.(?!\.)(\s|$)|[,;:][.,;:?!](\s|$)|[?!]'?[.,;:](\s|$)|\.[,;:]\s|\s[.,;:?!](\s|$)|\. \([^()]*\)\.$"
)
GROUP_HELP = re.compile(r"^Usage: .*COMMAND \[ARGS\]\.\.\.$", re.MULTILINE)


@pytest.mark.parametrize(
    ("scheme", "words"),
    [
        ("http", "does not answer as a Kafka broker does: it speaks HTTP; "),
        ("text", "does not answer as a Kafka broker does: it speaks the text protocol; "),
        ("legacy", "closed the connection without an answer; perhaps its listener has TLS, or is for something else: "),
    ],
)
@pytest.mark.parametrize("command", ["topic list", "produce T FILE", "group list", "cluster info"])
def test_a_port_that_does_not_speak_kafka(
    command: str, scheme: str, words: str, other_ports: dict[str, str], names: dict[str, list[str]]
) -> None:
    code, said = ask(f"{command} --bootstrap {other_ports[scheme]}", names)
    assert code == 1
    assert f"Error: {other_ports[scheme]} {words}the broker's log names its Kafka port when it starts: " in said
    check(said)


@pytest.mark.parametrize("command", ["topic describe nobody", "consume nobody", "export nobody --to parquet out"])
def test_a_topic_that_is_not_there(command: str, broker: BrokerProcess, names: dict[str, list[str]]) -> None:
    code, said = ask(f"{command} B", names | {"B": ["--bootstrap", broker.bootstrap]})
    assert code == 1
    assert "Error: topic 'nobody'" in said
    assert "`korvet-fast topic list` names those" in said
    check(said)


def check(said: str) -> None:
    """One error, in a sentence of letters."""
    if "Error: " not in said:
        assert GROUP_HELP.search(said), said  # a group alone prints its help
        return
    _, *errors = said.split("Error: ")
    assert len(errors) == 1, said
    for sentence in errors[0].rstrip("\n").split("\n"):
        check_sentence(sentence)


def check_sentence(sentence: str) -> None:
    assert sentence.isprintable()
    assert "Traceback" not in sentence
    assert "korvet_fast." not in sentence, "a name of ours"
    assert "[Errno" not in sentence, "a number of the system's"
    assert re.search(r"[\w)'\"`\]]([.?!]|\.\.\.)$", sentence), f"ends otherwise than a sentence: {sentence}"
    assert not DOUBLED.search(sentence), sentence
    assert not re.search(r"(?<!-)\b1 (?!(is|s|was|has)\b)[a-z]+(?<!s)s\b", sentence), f"one is not many: {sentence}"
    assert not re.search(r"\b([02-9]|\d+\d) (record|partition|topic|group|member|broker|setting|byte)\b", sentence), (
        f"many are not one: {sentence}"
    )
    assert not re.search(r"\bloggers was\b|\bbrokers \d+ (have|are)\b", sentence), f"neither here: {sentence}"
    assert len(sentence) < 400, sentence


@pytest.mark.parametrize(
    "bad",
    ["no end", "two stops..", "a word: , and more.", "has 1 partitions.", "has 3 partition.", "why?, or not.", "\x1b."],
)
def test_the_check_finds_what_it_is_for(bad: str) -> None:
    with pytest.raises(AssertionError):
        check_sentence(bad)
