"""The measurement tells the broker's waits from the machine's."""

from pathlib import Path

import pytest

from abuse.measure import Wait, Waits, overlap
from abuse.prepared import SETTINGS
from abuse.row import MEMORY, SINGLE, Row
from abuse.scale import FULL, HERE, SHORT, known

BOUND = 0.1


def read(path: Path, *lines: str) -> Waits:
    path.write_text("".join(f"{line}\n" for line in lines))
    waits = Waits(path)
    waits.read()
    return waits


def test_a_long_wait_counts_while_the_machine_answers_at_once(tmp_path: Path) -> None:
    waits = read(tmp_path / "w", "echo 9.9 0.001", "ping 10.0 0.5", "echo 10.1 0.004", "echo 10.3 0.02")
    assert waits.longest("ping", 10.0, 11.0, BOUND) == (0.5, 0)


def test_a_wait_in_which_the_machine_stood_still_is_not_the_brokers(tmp_path: Path) -> None:
    waits = read(tmp_path / "w", "ping 10.0 0.15", "echo 10.02 0.08", "ping 10.6 0.03")
    assert waits.longest("ping", 10.0, 11.0, BOUND) == (0.03, 1)


def test_what_is_left_without_the_machines_share_must_be_within_the_bound(tmp_path: Path) -> None:
    waits = read(tmp_path / "w", "ping 10.0 0.5", "echo 10.2 0.26")
    assert waits.longest("ping", 10.0, 11.0, BOUND) == (0.5, 0)


def test_a_slow_disk_excuses_producers_and_not_others(tmp_path: Path) -> None:
    waits = read(tmp_path / "w", "produce.x 10.0 0.5", "ping 10.0 0.5", "flush 9.9 0.6")
    assert waits.longest("produce.x", 10.0, 11.0, BOUND) == (0.0, 1)
    assert waits.longest("ping", 10.0, 11.0, BOUND) == (0.5, 0)


def test_a_broker_without_a_processor_is_not_to_blame(tmp_path: Path) -> None:
    waits = read(tmp_path / "w", *(f"queue {10 + n / 100} 0.008" for n in range(20)), "ping 10.0 0.2")
    assert waits.longest("ping", 10.0, 11.0, BOUND) == (0.0, 1)


def test_a_processor_that_the_host_took_away_is_not_to_blame_on_the_broker(tmp_path: Path) -> None:
    waits = read(tmp_path / "w", "steal 10.0 0.06", "steal 10.1 0.07", "ping 10.0 0.2", "ping 10.5 0.2")
    assert waits.longest("ping", 10.0, 10.4, BOUND) == (0.0, 1)
    assert waits.longest("ping", 10.4, 11.0, BOUND) == (0.2, 0)


def test_waits_that_began_before_or_end_later_count(tmp_path: Path) -> None:
    waits = read(tmp_path / "w", "ping 1.0 0.2", "ping 9.0 2.0", "ping 11.5 3.0", "ping 20.0 5.0")
    assert waits.longest("ping", 10.0, 12.0, BOUND) == (3.0, 0)


def test_a_line_that_is_not_whole_is_read_later(tmp_path: Path) -> None:
    waits = read(tmp_path / "w", "ping 1.0 0.2")
    with (tmp_path / "w").open("a") as file:
        file.write("ping 2.0 0.")
        file.flush()
        waits.read()
        assert waits.by_role["ping"] == [Wait(1.0, 0.2)]
        file.write("3\n")
        file.flush()
    waits.read()
    assert waits.by_role["ping"] == [Wait(1.0, 0.2), Wait(2.0, 0.3)]


def test_overlap_is_the_time_in_common() -> None:
    probe = [Wait(0.0, 1.0), Wait(2.0, 1.0), Wait(4.0, 9.0)]
    assert overlap(Wait(0.5, 4.0), probe) == pytest.approx(0.5 + 1.0 + 0.5)
    assert overlap(Wait(1.2, 0.5), probe) == 0.0


def test_a_row_says_which_bounds_it_passes() -> None:
    row = Row("9.9", "an attack", "files", SINGLE, waits={"ping": 0.2, "fetch": 0.05})
    row.started_with, row.peak = 1 << 20, (1 << 20) + MEMORY + 1
    row.sockets, row.log_bytes = (10, 50, 40), 1 << 20
    assert [what.split()[2] for what in row.broken()] == ["ping", "memory", "10", "1048576"]
    row = Row("9.9", "an attack", "files", SINGLE, waits={"ping": 0.05}, sockets=(10, 50, 11))
    assert row.broken() == []


def test_every_setting_of_a_campaign_is_known() -> None:
    for scale in (SHORT, FULL):
        settings = (*SETTINGS, *scale.settings)
        assert known(settings, HERE) == list(settings)
