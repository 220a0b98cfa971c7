"""Programs that count in a table of their own: killed, their directory lost, they go on from the table's changelog."""

import shutil
from collections.abc import Iterable
from pathlib import Path

import pytest

from compat.tools.programs import Program, Topics, running
from redis_server import free_port

pytestmark = pytest.mark.timeout(600)
BEFORE, AFTER = range(20), range(20, 25)


def check(program: Program, topics: Topics, state: Path, kinds: Iterable[bytes], ready: str = "") -> list[int]:
    """What was counted before it was killed is counted still: each count follows the one before. The last of each.

    `ready`: what it says when it reads again; the records of AFTER come then. Left out: they come while it is away.
    """

    def found() -> list[list[int]]:
        return [counts for kind in kinds for counts in topics.counts("out", kind).values()]

    def counted(total: int) -> bool:
        return all(len(counts) >= total for counts in found()) and topics.all_committed("app", "in")

    program.until(lambda: counted(20))
    program.kill()
    shutil.rmtree(state, ignore_errors=True)
    if not ready:
        topics.feed("in", AFTER)
    before = program.times(ready)
    program.start()
    if ready:
        program.until(lambda: program.times(ready) > before)
        topics.feed("in", AFTER)
    program.until(lambda: counted(25))
    assert all(counts == list(range(1, len(counts) + 1)) for counts in found())
    return [counts[-1] for counts in found()]


def test_kafka_streams_with_stores_and_windows(topics: Topics, tmp_path: Path) -> None:
    topics.feed("in", BEFORE)
    state = tmp_path / "state"
    asked = ("Counts", topics.bootstrap, "app", str(state), "in", "out")
    with running("java_programs", tmp_path / "log", *asked) as program:
        assert check(program, topics, state, (b"all", b"daily")) == [25] * 4
    assert topics.setting("app-all-changelog", "cleanup.policy") == "compact"
    assert sorted(topics.setting("app-daily-changelog", "cleanup.policy").split(",")) == ["compact", "delete"]


# It commits by a list of all offsets between two records: over `entries` that is a million for each second without one.
# After a restore 0.15.3 lets its fetcher go on before it seeks to what was committed (tables/recovery.py,
# on_recovery_completed): records that wait then are counted twice, or never, over Apache Kafka as well. So none wait.
@pytest.mark.parametrize("world", ["embedded", "batches"], indirect=True)
def test_faust_with_a_table(topics: Topics, tmp_path: Path) -> None:
    topics.feed("in", BEFORE)
    state = tmp_path / "state"
    asked = ("faust_counts.py", topics.bootstrap, "app", str(state), "in", "out", str(free_port()))
    with running("python_programs", tmp_path / "log", *asked) as program:
        assert check(program, topics, state, (b"all",), ready="Worker ready") == [25] * 2
    assert topics.setting("app-counts-changelog", "cleanup.policy") == "compact"


def test_quix_streams_with_state(topics: Topics, tmp_path: Path) -> None:
    topics.feed("in", BEFORE)
    state = tmp_path / "state"
    asked = ("quix_counts.py", topics.bootstrap, "app", str(state), "in", "out")
    with running("python_programs", tmp_path / "log", *asked) as program:
        assert check(program, topics, state, (b"all",)) == [25] * 2
    assert topics.setting("changelog__app--in--default", "cleanup.policy") == "compact"
