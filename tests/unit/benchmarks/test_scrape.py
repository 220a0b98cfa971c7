"""How long a client waits beside scrapes: what is told of it."""

from benchmarks.replication import Row
from benchmarks.scrape import tell_rounds


def test_the_wait_of_each_round_is_told() -> None:
    """The rule is of each, and the median hides one that is above it."""
    row = Row("  longest wait", [9.12, 11.4, 8.0], [6.5, 6.4, 6.6], "ms", "below 10 ms")
    assert tell_rounds(row) == "longest wait, round by round: 9.1, 11.4, 8.0 ms"
