"""What is said of a certificate, by the time that is left."""

from datetime import UTC, datetime, timedelta

import pytest

from korvet_fast.core.certificate_end import CertificateEnd

BEGINS, ENDS = datetime(2026, 1, 2, 3, 4, tzinfo=UTC), datetime(2026, 12, 24, 12, tzinfo=UTC)
END = CertificateEnd("server.pem", "CN=broker", BEGINS, ENDS, "clients refuse it")
SECOND = timedelta(seconds=1)


@pytest.mark.parametrize(
    ("now", "good", "due", "words"),
    [
        (BEGINS - SECOND, False, True, "is valid from 2026-01-02 03:04 UTC on: look at this machine's clock"),
        (BEGINS, True, False, "ends on 2026-12-24, in 356 days"),
        (ENDS - timedelta(days=30), True, False, "ends on 2026-12-24, in 30 days"),
        (
            ENDS - timedelta(days=30) + SECOND,
            True,
            True,
            "ends on 2026-12-24, in 29 days: put a new one there, which a running broker reads by itself",
        ),
        (ENDS - SECOND, True, True, "in 0 days: put a new one there, which a running broker reads by itself"),
        (ENDS, False, True, "ended on 2026-12-24, and clients refuse it: put a new one there"),
    ],
)
def test_what_is_said_by_the_time_that_is_left(now: datetime, good: bool, due: bool, words: str) -> None:
    assert (END.is_good(now), END.is_due(now)) == (good, due)
    said = END.describe(now)
    assert said.startswith("server.pem: CN=broker ")
    assert said.endswith(words)
