"""`make demo` with fewer flights, over both stores: what it prints, and that it sees what did not come back."""

import sys

import pytest

from examples.flights import demo as flights
from examples.flights.demo import Record
from flight_lines import write_flights

COUNT = 3_000


@pytest.fixture(autouse=True)
def few_flights(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flights, "ROWS", COUNT)
    monkeypatch.setattr(flights, "flights", lambda: write_flights(COUNT))


@pytest.mark.parametrize(("words", "end"), [([], "came back,"), (["redis"], "again out of Redis,")])
def test_the_demo_compares_every_record(
    words: list[str], end: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["flights", *words])
    flights.main()
    printed = " ".join(capsys.readouterr().out.split())
    assert f"Every record {'came back through Kafka and again out of Redis,' if words else 'came back,'}" in printed
    assert end in printed
    assert "│ 9E │ 188 │" in printed


def test_a_record_that_is_missing_or_changed_ends_the_demo() -> None:
    rows = write_flights(3)[1:]
    records = [Record(number, row.split(",")[9].encode(), row.encode()) for number, row in enumerate(rows)]
    assert flights.compare(iter(records), rows).keys() == {"9E", "AA", "AS"}
    with pytest.raises(SystemExit, match="1 of 3 lines did not come back"):
        flights.compare(iter(records[:2]), rows)
    with pytest.raises(SystemExit, match="line 1 came back changed"):
        flights.compare(iter([records[0], records[1]._replace(value=rows[2].encode())]), rows)


def test_another_store_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["flights", "tape"])
    with pytest.raises(SystemExit, match="there is no STORE=tape"):
        flights.main()
