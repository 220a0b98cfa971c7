"""The settings of Kafka 0.7 in a config file: taken by our names, or refused with the nearest."""

from pathlib import Path

import pytest

from korvet_fast.config import Source, read_settings
from korvet_fast.config_def import SETTINGS
from korvet_fast.config_legacy import MAPPED, NEAREST
from korvet_fast.errors import SettingError

# Section 8 of the notes on 0.7: the names of a broker's settings, those of its sample file among them.
BROKER_SETTINGS = [
    "brokerid",
    "port",
    "hostname",
    "num.threads",
    "socket.send.buffer",
    "socket.receive.buffer",
    "max.socket.request.bytes",
    "monitoring.period.secs",
    "num.partitions",
    "topic.partition.count.map",
    "max.message.size",
    "max.topic.name.length",
    "log.dir",
    "log.file.size",
    "topic.log.file.size",
    "log.roll.hours",
    "topic.log.roll.hours",
    "log.retention.hours",
    "topic.log.retention.hours",
    "log.retention.size",
    "topic.log.retention.size",
    "log.cleanup.interval.mins",
    "log.flush.interval",
    "log.default.flush.scheduler.interval.ms",
    "log.default.flush.interval.ms",
    "topic.flush.intervals.ms",
    "enable.zookeeper",
    "zk.connect",
    "zk.sessiontimeout.ms",
    "zk.connectiontimeout.ms",
    "zk.synctime.ms",
]


def write(folder: Path, text: str) -> Path:
    file = folder / "korvet.toml"
    file.write_text(text)
    return file


def test_every_broker_setting_of_0_7_is_known_once() -> None:
    same = {name for name in BROKER_SETTINGS if name in SETTINGS}
    assert same == {"num.partitions", "topic.partition.count.map"}
    assert sorted([*MAPPED, *NEAREST, *same]) == sorted(BROKER_SETTINGS)
    assert all(ours in SETTINGS for ours, _ in MAPPED.values())


@pytest.mark.parametrize("name", MAPPED)
def test_a_mapped_setting_is_ours_in_our_units(tmp_path: Path, name: str) -> None:
    ours, factor = MAPPED[name]
    settings = read_settings(file=write(tmp_path, f'"{name}" = 2048'))
    assert settings.number(ours) == 2048 * factor
    assert settings.source(ours) is Source.FILE


def test_no_limit_is_minus_one_in_both(tmp_path: Path) -> None:
    assert read_settings(file=write(tmp_path, "log.retention.size = -1")).number("log.retention.bytes") == -1


def test_partitions_by_topic(tmp_path: Path) -> None:
    file = write(tmp_path, 'topic.partition.count.map = "t1:8, other topic:16"')
    assert read_settings(file=file).counts("topic.partition.count.map") == {"t1": 8, "other topic": 16}
    assert read_settings().counts("topic.partition.count.map") == {}


@pytest.mark.parametrize("text", ["t1", "t1:0", "t1:8,", ":8", "t1:8:9", "t1:-1"])
def test_partitions_by_topic_that_are_none_are_explained(text: str) -> None:
    with pytest.raises(SettingError, match="must be as in clicks:8,orders:16"):
        read_settings([f"topic.partition.count.map={text}"])


@pytest.mark.parametrize("name", NEAREST)
def test_a_setting_that_is_not_taken_is_refused_with_the_nearest(tmp_path: Path, name: str) -> None:
    file = write(tmp_path, f'"{name}" = "x"')
    with pytest.raises(SettingError) as refused:
        read_settings(file=file)
    expected = f"{name} is a setting of Kafka 0.7 that is not taken here; the nearest is {NEAREST[name]}"
    assert str(refused.value) == f"{file}: {expected}"


def test_the_same_setting_by_both_names_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match=r"brokerid is what Kafka 0\.7 calls node\.id"):
        read_settings(file=write(tmp_path, "brokerid = 1\nnode.id = 2"))


@pytest.mark.parametrize("value", ["9999999999999999", '"many"', "true", "1.5", "[1]"])
def test_a_wrong_value_is_told_by_both_names(tmp_path: Path, value: str) -> None:
    with pytest.raises(SettingError, match=r"log\.retention\.hours.*log\.retention\.ms must be a whole number"):
        read_settings(file=write(tmp_path, f"log.retention.hours = {value}"))


PAGE = (Path(__file__).parents[2] / "docs" / "legacy.md").read_text().split("## Settings of 0.7", 1)[1]
UNITS = {1: "", 60_000: ", in minutes", 3_600_000: ", in hours"}


def test_the_page_lists_every_setting_and_what_becomes_of_it() -> None:
    taken, refused = (part.splitlines() for part in PAGE.split("These are refused", 1))
    wanted = [f"| `{name}` | `{ours}`{UNITS[factor]} |" for name, (ours, factor) in MAPPED.items()]
    same = "| `num.partitions`, `topic.partition.count.map` | the same |"
    assert [line for line in taken if line.startswith("| `")] == [*wanted, same]
    assert [line for line in refused if line.startswith("| `")] == [
        f"| `{name}` | {nearest} |" for name, nearest in NEAREST.items()
    ]


def test_the_page_tells_the_default_of_max_message_size() -> None:
    assert f"`message.max.bytes`, {read_settings().number('message.max.bytes')}" in PAGE.replace("\n", " ")


@pytest.mark.parametrize(
    ("misspelt", "meant"),
    [("brokerId", "brokerid"), ("log.flush.intervall", "log.flush.interval"), ("zk.conect", "zk.connect")],
)
def test_a_misspelt_name_of_0_7_is_told_what_it_was_meant_for(tmp_path: Path, misspelt: str, meant: str) -> None:
    with pytest.raises(SettingError, match=f"no setting '{misspelt}'; did you mean '{meant}'?"):
        read_settings(file=write(tmp_path, f'"{misspelt}" = 1'))
