"""The longest wait of a journal is that of the partition that was away, whatever the others did."""

import pytest

from journal import Journal, Sent


class Run:
    """Producers at a clock that the test moves."""

    def __init__(self) -> None:
        self.now = 100.0
        self.journal = Journal(lambda: self.now)
        self.count = 0

    def send(self, partition: int, at: float, *, acknowledged: bool = True) -> None:
        self.now, self.count = at, self.count + 1
        value = Sent("a", self.count)
        self.journal.note_sent(value, partition, once=True)
        if acknowledged:
            self.journal.note_acknowledged(value, (partition, self.count))


@pytest.fixture
def run() -> Run:
    found = Run()
    for partition in (0, 1):
        found.send(partition, 100)
    return found


def test_a_partition_that_is_away_while_another_acknowledges(run: Run) -> None:
    run.send(1, 101, acknowledged=False)
    for at in range(101, 109):
        run.send(0, at)
    run.send(1, 109)
    assert run.journal.longest_wait == 8


def test_a_partition_that_is_away_to_the_end_counts_as_long_as_it_is_written_to(run: Run) -> None:
    for at in range(101, 106):
        run.send(1, at, acknowledged=False)
    run.send(0, 200)
    assert run.journal.longest_wait == 4


def test_nobody_waits_for_a_partition_that_nobody_writes_to(run: Run) -> None:
    run.send(1, 200)
    assert run.journal.longest_wait == 0
