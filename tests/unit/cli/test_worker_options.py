"""`--workers` and `--worker-ports`: each worker's addresses and number, and what is refused."""

from pathlib import Path

import click
import pytest

from korvet_fast.cli import worker_options
from korvet_fast.cli.broker_options import BrokerOptions
from korvet_fast.cli.worker_options import choose_count, make_worker_options, parse_count, parse_ports
from korvet_fast.config import read_settings
from korvet_fast.endpoint import Endpoint, read_endpoint
from korvet_fast.store.redis.connection.url import parse_url


def options(*listeners: str, told: tuple[str | None, ...] = (), flags: tuple[str, ...] = ()) -> BrokerOptions:
    """Those of one broker over files."""
    endpoints = tuple(map(read_endpoint, listeners))
    advertised: tuple[Endpoint | None, ...] = tuple(None if each is None else read_endpoint(each) for each in told)
    return BrokerOptions(
        "file:x", Path("x"), endpoints, advertised or (None,) * len(endpoints), read_settings(flags), False
    )


def show(made: list[BrokerOptions]) -> list[list[str]]:
    return [[str(listener) for listener in each.listeners] for each in made]


def test_each_worker_has_the_ports_above_those_of_the_one_before() -> None:
    made = make_worker_options(options("kafka://127.0.0.1:9092", "http://127.0.0.1:8080"), 3, None)
    assert show(made) == [
        ["kafka://127.0.0.1:9092", "http://127.0.0.1:8080"],
        ["kafka://127.0.0.1:9093", "http://127.0.0.1:8081"],
        ["kafka://127.0.0.1:9094", "http://127.0.0.1:8082"],
    ]
    assert [each.settings.number("node.id") for each in made] == [1, 2, 3]
    assert {each.place for each in made} == {Path("x")}


def test_ports_that_are_named_are_taken_in_turn() -> None:
    made = make_worker_options(options("kafka://127.0.0.1:9092", "text://127.0.0.1:9093"), 3, parse_ports("9100-9109"))
    assert show(made)[1:] == [
        ["kafka://127.0.0.1:9100", "text://127.0.0.1:9101"],
        ["kafka://127.0.0.1:9102", "text://127.0.0.1:9103"],
    ]


def test_what_clients_are_told_moves_with_the_listener() -> None:
    given = options("kafka://0.0.0.0:9092", told=("kafka://broker.example.org:19092",), flags=("node.id=7",))
    assert [str(each.advertised[0]) for each in make_worker_options(given, 2, None)] == [
        "kafka://broker.example.org:19092",
        "kafka://broker.example.org:19093",
    ]
    made = make_worker_options(given, 2, parse_ports("9500"))
    assert str(made[1].advertised[0]) == "kafka://broker.example.org:9500"
    assert [each.settings.number("node.id") for each in made] == [7, 8]


def test_any_free_port_stays_any() -> None:
    assert show(make_worker_options(options("kafka://127.0.0.1:0"), 3, None)) == [["kafka://127.0.0.1:0"]] * 3


@pytest.mark.parametrize(
    ("given", "ports", "why"),
    [
        (
            options("kafka://127.0.0.1:9092", "text://127.0.0.1:9093"),
            None,
            "kafka://127.0.0.1:9093 of worker 2 has the port of text://127.0.0.1:9093 of worker 1: choose others",
        ),
        (options("kafka://127.0.0.1:9092"), parse_ports("9092"), "has the port of kafka://127.0.0.1:9092 of worker 1"),
        (options("kafka://127.0.0.1:9", "text://127.0.0.1:8"), parse_ports("9100"), "has 1 ports, and 2 are needed"),
        (options("kafka://127.0.0.1:65535"), None, "worker 2 would have the port 65536: choose others"),
        (options("kafka://127.0.0.1:9092")._replace(place=parse_url("redis://h")), None, "start 2 brokers with the"),
        (
            options("kafka://127.0.0.1:9092", flags=("replication.peers=1@h:1,2@h:2",)),
            None,
            "does not go with replication.peers",
        ),
    ],
)
def test_what_cannot_be_is_refused(given: BrokerOptions, ports: range | None, why: str) -> None:
    with pytest.raises(click.UsageError) as refused:
        make_worker_options(given, 2, ports)
    assert why in refused.value.message


def test_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    assert parse_count("1") == 1
    assert parse_count("256") == 256
    for cores, count in ((1, 1), (3, 3), (500, 256)):
        monkeypatch.setattr(worker_options, "count_cores", lambda cores=cores: cores)
        assert choose_count() == count
    assert parse_count("auto") is None
    for bad in ("0", "257", "-1", "two", "", "1.5"):
        with pytest.raises(click.BadParameter, match="is not a number from 1 to 256, and not auto"):
            parse_count(bad)


def test_ports() -> None:
    assert parse_ports("9100-9102") == range(9100, 9103)
    assert parse_ports("65535") == range(65535, 65536)
    for bad in ("0", "9-8", "9100-", "65536", "1-65536", "a-b", "9100,9101", ""):
        with pytest.raises(click.BadParameter, match="should be ports such as 9100-9131"):
            parse_ports(bad)
