"""Where settings come from, who wins, and what is said about a wrong one."""

from pathlib import Path

import pytest

from korvet_fast.config import Source, read_settings
from korvet_fast.config_def import SETTINGS, TOPIC_SETTINGS, Kind, show
from korvet_fast.errors import SettingError


def test_defaults_are_legal() -> None:
    for row in SETTINGS.values():
        assert row.parse(row.default) == row.default
        assert row.parse(show(row.default)) == row.default
        assert row.doc.endswith(".")
        assert (row.kind in (Kind.STRING, Kind.LIST, Kind.DOUBLE)) == bool(row.choices)


def test_topic_settings_belong_to_a_broker_setting() -> None:
    for name, row in TOPIC_SETTINGS.items():
        assert row.topic == name
        assert SETTINGS[row.name] is row


def test_flag_beats_environment_beats_file_beats_default(tmp_path: Path) -> None:
    file = tmp_path / "korvet.toml"
    file.write_text("num.partitions = 2\nnode.id = 2\nmin.insync.replicas = 2\n")
    environment = {"KORVET_NUM_PARTITIONS": "3", "KORVET_NODE_ID": "3", "HOME": "/"}
    settings = read_settings(["num.partitions=4"], environment, file)
    values = {name: (settings.number(name), settings.source(name)) for name in ("num.partitions", "node.id")}
    assert values == {"num.partitions": (4, Source.FLAG), "node.id": (3, Source.ENVIRONMENT)}
    assert settings.number("min.insync.replicas") == 2
    assert settings.source("min.insync.replicas") is Source.FILE
    assert settings.source("durability") is Source.DEFAULT
    assert settings.text("durability") == "server"


@pytest.mark.parametrize("line", ["num.partitions = 0", "num.partition = 4"])
def test_a_file_that_is_refused_is_named(tmp_path: Path, line: str) -> None:
    file = tmp_path / "korvet.toml"
    file.write_text(line)
    with pytest.raises(SettingError) as refused:
        read_settings(file=file)
    assert str(refused.value).startswith(f"{file}: ")


def test_toml_names_may_be_dotted_nested_or_quoted(tmp_path: Path) -> None:
    file = tmp_path / "korvet.toml"
    file.write_text('"max.connections" = 5\n"max.connections.per.ip" = 4\n[auto.create.topics]\nenable = false\n')
    settings = read_settings(file=file)
    assert settings.number("max.connections") == 5
    assert settings.number("max.connections.per.ip") == 4
    assert settings.flag("auto.create.topics.enable") is False


@pytest.mark.parametrize(
    ("flag", "said"),
    [
        ("num.partition=1", "did you mean 'num.partitions'"),
        ("num.partitions", "write it as name=value"),
        ("num.partitions=0", "a whole number from 1 to 2147483647"),
        ("num.partitions=2147483648", "a whole number from 1 to 2147483647"),
        ("num.partitions=many", "a whole number"),
        ("num.partitions=", "a whole number"),
        ("num.partitions=--1", "a whole number"),
        ("num.partitions=" + "9" * 5000, "a whole number"),
        ("auto.create.topics.enable=yes", "true or false"),
        ("compression.type=brotli", "producer, uncompressed, gzip, snappy, lz4, zstd"),
        ("log.cleanup.policy=compress", "one of delete, compact"),
        ("log.cleaner.min.cleanable.ratio=1.5", "as in 0.5"),
        ("compression.zstd.level=23", "from -131072 to 22"),
    ],
)
def test_a_wrong_flag_is_explained(flag: str, said: str) -> None:
    with pytest.raises(SettingError, match=said):
        read_settings([flag])


def test_an_unknown_environment_variable_is_explained_but_foreign_ones_are_not_ours() -> None:
    with pytest.raises(SettingError, match="KORVET_NUM_PARTITIONS"):
        read_settings(environment={"KORVET_NUM_PARTITION": "1"})
    read_settings(environment={"KORVET_TEST_REQUIRE": "all"})


@pytest.mark.parametrize("service", ["KORVET", "KORVET_FAST", "KORVET_REDIS"])
def test_what_kubernetes_sets_for_a_service_is_not_ours(service: str) -> None:
    address = ("", "_PROTO", "_PORT", "_ADDR")
    names = ["SERVICE_HOST", "SERVICE_PORT", "SERVICE_PORT_KAFKA", "PORT", *("PORT_9092_TCP" + end for end in address)]
    read_settings(environment={f"{service}_{name}": "tcp://10.0.0.1:9092" for name in names})
    with pytest.raises(SettingError, match=f"{service}_PORTS"):
        read_settings(environment={f"{service}_PORTS": "1"})


def test_no_setting_looks_like_what_kubernetes_sets() -> None:
    for name in SETTINGS:
        with pytest.raises(SettingError):
            read_settings(environment={"KORVET_" + name.upper().replace(".", "_"): "\0"})


def test_a_file_that_is_not_text_is_explained(tmp_path: Path) -> None:
    file = tmp_path / "korvet.toml"
    file.write_bytes(b"\xff\xfe")
    with pytest.raises(SettingError, match="is not UTF-8 text"):
        read_settings(file=file)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("num.partitions = 1.5", "must be a whole number"),
        ("num.partitions = true", "must be a whole number"),
        ("num.partitions = [1]", "must be a whole number"),
        ("nun.partitions = 1", "did you mean 'num.partitions'"),
        ('stroe = "file:data"', "did you mean 'store'"),
        ("max.connections = 5\nmax.connections.per.ip = 4", "a name may be quoted"),
        ("= 3", "a name may be quoted"),
    ],
)
def test_a_wrong_file_is_explained(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "korvet.toml"
    file.write_text(text)
    with pytest.raises(SettingError, match=said):
        read_settings(file=file)


def test_a_missing_file_is_explained(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match="No such file"):
        read_settings(file=tmp_path / "none.toml")


def test_describe_names_every_setting_with_its_synonyms() -> None:
    rows = {row.name: row for row in read_settings(["node.id=7"]).describe()}
    assert list(rows) == sorted(SETTINGS)
    assert rows["node.id"].synonyms == (("node.id", "7", Source.FLAG), ("node.id", "1", Source.DEFAULT))
    assert rows["num.partitions"].synonyms == (("num.partitions", "1", Source.DEFAULT),)
    assert rows["auto.create.topics.enable"].value == "true"


def test_a_name_that_is_like_no_other_is_not_taken_for_one() -> None:
    with pytest.raises(SettingError) as refused:
        read_settings(["nonsense=1"])
    assert str(refused.value) == "--set: there is no setting 'nonsense'; docs/configuration.md has all of them"


def test_a_mistyped_name_is_told_with_the_nearest_and_where_all_are() -> None:
    with pytest.raises(SettingError) as refused:
        read_settings(["ssl.keystore.locatoin=x"])
    assert str(refused.value) == (
        "--set: there is no setting 'ssl.keystore.locatoin'; did you mean 'ssl.keystore.location'? "
        "docs/configuration.md has all of them"
    )
