"""The options of the data source: names, values, and what is refused."""

import pickle
import re
from pathlib import Path

import pytest

from korvet_fast.errors import SettingError
from korvet_fast.spark.options import ROWS, Options, Use, parse, parse_columns
from korvet_fast.types import EARLIEST, LATEST

BASE = {"kafka.bootstrap.servers": "127.0.0.1:9092", "subscribe": "t"}
NAMED = '{"t": {"0": 5, "1": -2}}'


def read(use: Use = Use.READ, **given: str) -> Options:
    return parse({**BASE, **{name.replace("__", "."): value for name, value in given.items()}}, use)


def test_defaults_are_those_of_sparks_kafka_source() -> None:
    options = read()
    assert options.subscribe == ("t",)
    assert options.start(EARLIEST).everywhere == EARLIEST
    assert options.end().everywhere == LATEST
    assert options.fail_on_data_loss
    assert (options.poll_timeout, options.offset_retries, options.offset_pause) == (120.0, 3, 1.0)
    assert not options.offset_query.committed
    assert options.max_delay == 15 * 60
    assert not options.include_headers


def test_names_have_no_case() -> None:
    options = parse({name.lower(): value for name, value in {**BASE, "failOnDataLoss": "FALSE"}.items()}, Use.STREAM)
    assert not options.fail_on_data_loss


def test_options_travel_to_tasks() -> None:
    options = read(startingOffsets=NAMED, columns="value,key")
    assert pickle.loads(pickle.dumps(options)) == options


def test_a_time_for_all_counts_before_times_for_each_and_those_before_offsets() -> None:
    given = {"startingTimestamp": "7", "startingOffsetsByTimestamp": '{"t": {"0": 8}}', "startingOffsets": NAMED}
    found = []
    for name in list(given):
        bound = read(**given).start(EARLIEST)
        found.append((bound.option, bound.timed, bound.everywhere, dict(bound.each)))
        del given[name]
    assert found == [
        ("startingTimestamp", True, 7, {}),
        ("startingOffsetsByTimestamp", True, None, {("t", 0): 8}),
        ("startingOffsets", False, None, {("t", 0): 5, ("t", 1): EARLIEST}),
    ]
    ending = {"endingTimestamp": "7", "endingOffsets": '{"t": {"0": -1}}'}
    assert read(**ending).end().everywhere == 7
    del ending["endingTimestamp"]
    assert read(**ending).end().each == {("t", 0): LATEST}


def test_columns_are_read_before_it_is_known_what_for() -> None:
    assert parse_columns({"columns": "value, KEY,timestamptype"}) == ("value", "key", "timestampType")
    assert parse_columns({}) == ("key", "value", "topic", "partition", "offset", "timestamp", "timestampType")
    assert parse_columns({"includeheaders": "true"})[-1] == "headers"
    with pytest.raises(SettingError, match=r"'columns' is 'valu'.*did you mean 'value'"):
        parse_columns({"columns": "valu"})


@pytest.mark.parametrize(
    ("use", "given", "words"),
    [
        (Use.READ, {"startingOffset": "earliest"}, "no option 'startingoffset' for batch reads; .* 'startingOffsets'"),
        (Use.READ, {"xyzzy": "1"}, "there is no option 'xyzzy' for batch reads$"),
        (Use.READ, {"kafka.fetch.max.byte": "1"}, "did you mean 'kafka.fetch.max.bytes'"),
        (Use.READ, {"maxOffsetsPerTrigger": "5"}, "option 'maxOffsetsPerTrigger' is not for batch reads"),
        (Use.STREAM, {"endingOffsets": "latest"}, "option 'endingOffsets' is not for streams"),
        (Use.STREAM, {"endingTimestamp": "1"}, "option 'endingTimestamp' is not for streams"),
        (Use.READ, {"startingOffsets": "latest"}, "'startingOffsets' is 'latest', which a batch read cannot use"),
        (Use.READ, {"startingOffsets": '{"t": {"3": -1}}'}, r"has -1 \(latest\) for partition 3 of topic 't'"),
        (Use.READ, {"endingOffsets": "earliest"}, "'endingOffsets' is 'earliest', which a batch read cannot use"),
        (Use.READ, {"endingOffsets": '{"t": {"3": -2}}'}, r"has -2 \(earliest\) for partition 3 of topic 't'"),
        (Use.READ, {"startingOffsets": "first"}, "'startingOffsets' is 'first', but has to be JSON like"),
        (Use.READ, {"startingOffsets": '{"t": {"0": -3}}'}, "partition 0 of topic 't' has -3 instead of a number"),
        (Use.READ, {"startingOffsets": '{"t": {"0": true}}'}, "has true instead of a number from -2 on"),
        (Use.READ, {"startingOffsets": '{"t": {"x": 1}}'}, "'x' of topic 't' is no partition number"),
        (Use.READ, {"startingOffsets": '{"t": 1}'}, "topic 't' has no partitions in it"),
        (Use.READ, {"startingOffsetsByTimestamp": '{"t": {"0": -1}}'}, "has -1 instead of a number from 0 on"),
        (Use.READ, {"startingTimestamp": "noon"}, "'startingTimestamp' is 'noon', but has to be a whole number"),
        (Use.READ, {"startingOffsetsByTimestampStrategy": "skip"}, "has to be error or latest"),
        (Use.READ, {"failOnDataLoss": "maybe"}, "has to be true or false"),
        (Use.READ, {"minPartitions": "0"}, "has to be a whole number from 1 on"),
        (Use.READ, {"kafka.bootstrap.servers": "here"}, "'here' is not an address"),
        (Use.READ, {"kafka.isolation.level": "serializable"}, "has to be read_uncommitted or read_committed"),
        (Use.READ, {"subscribePattern": "t.*"}, "exactly one of the options .* not more than one"),
        (Use.READ, {"columns": "value", "includeHeaders": "true"}, "'columns' leaves 'headers' out"),
        (Use.STREAM, {"maxTriggerDelay": "1m"}, "bounds the wait for 'minOffsetsPerTrigger': give that too"),
        (Use.STREAM, {"minOffsetsPerTrigger": "9", "maxOffsetsPerTrigger": "8"}, "larger than 'maxOffsetsPerTrigger'"),
        (Use.STREAM, {"minOffsetsPerTrigger": "9", "maxTriggerDelay": "soon"}, "has to be a time like 500ms, 30s, 15m"),
        (Use.READ, {"kafka.auto.offset.reset": "earliest"}, "cannot be given: say where to begin with"),
        (Use.READ, {"kafka.key.deserializer": "x"}, "cannot be given: keys are read as binary"),
        (Use.READ, {"path": "t"}, "cannot be given: topics are named by 'subscribe'"),
        (Use.READ, {"kafka.security.protocol": "SASL_SSL"}, "begin with 'kafka.': .* needs sasl.mechanism: PLAIN"),
        (Use.READ, {"kafka.ssl.truststore.location": "x"}, "is of TLS: set security.protocol=SSL as well"),
        (Use.READ, {"kafka.ssl.truststore.type": "JKS"}, "must be PEM"),
        (Use.READ, {"kafka.sasl.kerberos.service.name": "kafka"}, "'sasl.kerberos.service.name'; docs/security.md has"),
    ],
)
def test_what_is_refused(use: Use, given: dict[str, str], words: str) -> None:
    with pytest.raises(SettingError, match=words):
        parse({**BASE, **given}, use)


def test_a_function_that_gives_tokens_is_not_offered() -> None:
    with pytest.raises(SettingError) as caught:
        parse({**BASE, "kafka.sasl.oauth.token.provide": "kafka"}, Use.READ)
    assert "'kafka.sasl.oauth.token.provide'" not in str(caught.value)
    assert "sasl.oauth.token.provider" not in str(caught.value)


def test_how_brokers_are_connected_to_is_kept_as_given_and_not_shown() -> None:
    given = {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "PLAIN",
        "sasl.username": "Ann",
        "sasl.password": "Pear",
    }
    options = parse({**BASE, **{f"Kafka.{name}": value for name, value in given.items()}}, Use.READ)
    assert dict(options.security) == given
    assert "Pear" not in repr(options)


def test_what_is_missing() -> None:
    with pytest.raises(SettingError, match=r"'kafka.bootstrap.servers' is missing"):
        parse({"subscribe": "t"}, Use.READ)
    with pytest.raises(SettingError, match=r"exactly one of the options 'assign', 'subscribe' and .*, not none"):
        parse({"kafka.bootstrap.servers": "127.0.0.1:9092"}, Use.READ)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("{}", "one partition at least"),
        ('{"t": 1}', "no list of partition numbers"),
        ("t", "this is none"),
        ("[]", "JSON"),
    ],
)
def test_an_assignment_is_json(given: str, words: str) -> None:
    base = {"kafka.bootstrap.servers": "127.0.0.1:9092"}
    with pytest.raises(SettingError, match=f"'assign' is .*{words}"):
        parse({**base, "assign": given}, Use.READ)
    assert parse({**base, "assign": '{"t": [2, 0], "a": [1]}'}, Use.READ).assign == (("a", 1), ("t", 0), ("t", 2))


def test_the_page_about_them_names_them_all() -> None:
    page = (Path(__file__).parents[3] / "docs" / "spark.md").read_text()
    lines = [line.split("|")[1:3] for line in page.splitlines() if line.startswith("| `")]
    told = {name: words for first, words in lines for name in re.findall(r"`([^`]+)`", first)}
    assert told.keys() == {row.metadata["name"] for row in ROWS.values()}
    for row in ROWS.values():
        words = told[row.metadata["name"]]
        for use, word in ((Use.READ, "reads"), (Use.STREAM, "streams"), (Use.WRITE, "writes")):
            assert (use in row.metadata["uses"]) == (word in words or words.strip() == "all"), row


def test_times() -> None:
    for text, seconds in {"1500": 1.5, "500ms": 0.5, "30s": 30, "15m": 900, "2h": 7200, "1 min": 60}.items():
        assert read(Use.STREAM, minOffsetsPerTrigger="1", maxTriggerDelay=text).max_delay == seconds


def test_what_has_no_effect_is_said(caplog: pytest.LogCaptureFixture) -> None:
    parse({**BASE, "groupIdPrefix": "mine", "kafka.security.protocol": "PLAINTEXT"}, Use.STREAM)
    assert "'groupidprefix' has no effect: no consumer group is joined" in caplog.text
