"""Times as people write them: the same time for `consume`, `group reset` and `export`, on every machine."""

import time
from collections.abc import Iterator

import click
import pytest

from korvet_fast.cli.export import read_bound
from korvet_fast.cli.offset_target import Target, parse_target

NOON = 1_769_860_800_000  # ms: 2026-01-31T12:00Z


@pytest.fixture(autouse=True)
def far_from_greenwich(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with monkeypatch.context() as context:
        context.setenv("TZ", "America/New_York")
        time.tzset()
        yield
    time.tzset()


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("2026-01-31T12:00", NOON),
        ("2026-01-31 12:00:00Z", NOON),
        ("2026-01-31T13:00:00+01:00", NOON),
        ("2026-01-31", NOON - 12 * 3_600_000),
        ("2026-01-31T12:00:00.338", NOON + 338),  # exactly: not by way of a float
        ("1969-12-31T23:59:59", 0),
        ("0001-01-01T00:00:00+14:00", 0),
    ],
)
def test_a_time_without_a_zone_is_utc(text: str, ms: int) -> None:
    assert parse_target(text) == Target(time=ms)
    assert read_bound("ending", text) == {"endingTimestamp": str(ms)}
    assert read_bound("starting", text)["startingTimestamp"] == str(ms)


def test_what_is_no_time() -> None:
    assert parse_target("earliest") == Target(word="earliest")
    assert parse_target("20260131") == Target(offset=20_260_131)
    with pytest.raises(click.BadParameter, match="'2026-13-01' is none of: earliest, latest, an offset"):
        parse_target("2026-13-01")
