"""Groups with time and storage: what is told is stored, what is stored comes back, and failures are told as such."""

import asyncio
import logging
from pathlib import Path

import pytest

from batches import NOW
from core_world import copy_as_crashed
from group_broker import GROUP, Groups, run_groups, until
from korvet_fast.core.groups.coordinator import Position
from korvet_fast.core.groups.documents import Place, group_key, is_newer, offset_key, parse_key
from korvet_fast.core.groups.machine import State

MINUTE = 60_000


def describe(groups: Groups, group_id: str = GROUP) -> tuple[State, int]:
    fault, group = groups.groups.describe(group_id)
    assert group is not None, fault
    return group.state, group.generation


def test_a_generation_is_told_when_it_is_stored(tmp_path: Path) -> None:
    async def run() -> None:
        async with run_groups(tmp_path) as groups:
            groups.store.hold = asyncio.Event()
            joining = groups.join()
            await until(lambda: groups.store.saves == 1)
            assert not joining.done()
            groups.store.hold.set()
            joined = await joining
            groups.store.hold.clear()
            syncing = groups.sync(joined, {joined.member_id: b"all"})
            again = groups.sync(joined)
            await until(lambda: groups.store.saves == 2)
            assert not syncing.done()
            assert not again.done()
            groups.store.hold.set()
            assert [(await each).assignment for each in (syncing, again)] == [b"all", b"all"]

    asyncio.run(run())


def test_changes_while_a_group_is_being_stored_go_into_the_next_document(tmp_path: Path) -> None:
    async def run() -> None:
        async with run_groups(tmp_path) as groups:
            joined = await groups.form()
            groups.store.hold = asyncio.Event()
            first = groups.join(joined.member_id)
            await until(lambda: groups.store.saves == 3)
            newcomers = [groups.join() for _ in range(3)]
            groups.store.hold.set()
            assert (await first).generation == 2
            again = groups.join(joined.member_id)
            answers = [await each for each in (again, *newcomers)]
            assert {one.generation for one in answers} == {3}
            assert len(answers[0].members) == 4

    asyncio.run(run())


def test_a_restart_is_not_noticed_by_members_that_go_on(tmp_path: Path) -> None:
    async def run() -> None:
        async with run_groups(tmp_path / "data") as groups:
            joined = await groups.form()
            assert await groups.commit(42, joined, leader_epoch=3, metadata="note") == ""
            copy_as_crashed(tmp_path / "data", tmp_path / "image")
        async with run_groups(tmp_path / "image") as groups:
            assert describe(groups) == (State.STABLE, 1)
            assert groups.groups.heartbeat(GROUP, joined.member_id, None, 1) == ""
            groups.tick(9.9)  # a full session from the start on
            assert groups.groups.heartbeat(GROUP, joined.member_id, None, 1) == ""
            assert (await groups.sync(joined)).assignment == b"all"
            _, found = await groups.groups.fetch(GROUP, None)
            (commit,) = found.values()
            assert (commit.offset, commit.leader_epoch, commit.metadata, commit.ms) == (42, 3, "note", NOW)
            groups.tick(10.0)
            assert describe(groups) == (State.EMPTY, 2)

    asyncio.run(run())


def test_a_rebalance_cut_short_goes_on_after_a_restart(tmp_path: Path) -> None:
    async def run() -> None:
        async with run_groups(tmp_path / "data") as groups:
            joined = await groups.join()
            copy_as_crashed(tmp_path / "data", tmp_path / "image")
        async with run_groups(tmp_path / "image") as groups:
            assert describe(groups) == (State.COMPLETING, 1)
            assert (await groups.sync(joined, {joined.member_id: b"all"})).assignment == b"all"

    asyncio.run(run())


def test_a_silent_member_expires_by_itself(tmp_path: Path) -> None:
    async def run() -> None:
        async with run_groups(tmp_path, "group.min.session.timeout.ms=1") as groups:
            loop = asyncio.get_running_loop()
            began = loop.time()
            groups.clock.monotonic = loop.time  # type: ignore[method-assign]
            joined = await groups.join(session=0.05)
            await until(lambda: describe(groups)[0] is State.EMPTY)
            assert loop.time() - began >= 0.05
            assert groups.groups.heartbeat(GROUP, joined.member_id, None, 1) == "UNKNOWN_MEMBER_ID"

    asyncio.run(run())


def test_a_program_that_stood_still_does_not_expire_its_members(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def run() -> None:
        async with run_groups(tmp_path, "group.min.session.timeout.ms=1") as groups:
            loop = asyncio.get_running_loop()
            skipped = 0.0
            groups.clock.monotonic = lambda: loop.time() + skipped  # type: ignore[method-assign]
            joined = await groups.join(session=0.2)
            skipped = 50.0
            (keeper,) = groups.groups.keepers
            keeper.wake(50.0)
            assert groups.groups.heartbeat(GROUP, joined.member_id, None, 1) == ""

    with caplog.at_level(logging.WARNING):
        asyncio.run(run())
    assert "stood still" in caplog.text


@pytest.mark.parametrize("failure", ["refuse", "blind"])
def test_a_group_that_cannot_be_stored_is_loaded_again(tmp_path: Path, failure: str) -> None:
    async def run() -> None:
        async with run_groups(tmp_path) as groups:
            joined = await groups.form()
            fault = "COORDINATOR_NOT_AVAILABLE" if failure == "refuse" else "NOT_COORDINATOR"
            setattr(groups.store, failure, True if failure == "blind" else "the disk is gone")
            groups.store.unreadable = True
            joining = groups.join(joined.member_id)
            parked = groups.join()
            assert (await joining).fault == fault
            assert groups.groups.heartbeat(GROUP, joined.member_id, None, 1) == ""
            assert (await groups.join(joined.member_id)).fault == "COORDINATOR_LOAD_IN_PROGRESS"
            assert (await groups.sync(joined)).fault == "REBALANCE_IN_PROGRESS"
            assert await groups.commit(1, joined) == "COORDINATOR_LOAD_IN_PROGRESS"
            assert groups.groups.list() == ("COORDINATOR_LOAD_IN_PROGRESS", [])
            assert (await parked).fault == fault
            groups.store.unreadable = False
            setattr(groups.store, failure, False if failure == "blind" else "")
            await until(lambda: groups.groups.describe(GROUP)[1] is not None)
            assert describe(groups) == (State.STABLE, 1)
            assert (await groups.join(joined.member_id)).generation == 2

    asyncio.run(run())


@pytest.mark.parametrize("failure", ["refuse", "blind"])
def test_a_commit_that_cannot_be_stored_is_not_told(tmp_path: Path, failure: str) -> None:
    async def run() -> None:
        async with run_groups(tmp_path) as groups:
            joined = await groups.form()
            assert await groups.commit(1, joined) == ""
            setattr(groups.store, failure, True if failure == "blind" else "the disk is gone")
            answers = await asyncio.gather(*[groups.commit(offset, joined) for offset in (2, 3)])
            expected = "COORDINATOR_NOT_AVAILABLE" if failure == "refuse" else "NOT_COORDINATOR"
            assert set(answers) == {expected}
            setattr(groups.store, failure, False if failure == "blind" else "")
            await until(lambda: groups.groups.describe(GROUP)[1] is not None)
            assert await groups.fetch() == 1
            assert await groups.commit(4, joined) == ""
            assert await groups.fetch() == 4

    asyncio.run(run())


def test_a_store_that_forgot_is_told_again(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """No generation comes twice, no commit is lost, and members do not notice."""

    async def run() -> None:
        async with run_groups(tmp_path) as groups:
            joined = await groups.form()
            assert await groups.commit(1, joined) == ""
            keys = (group_key(GROUP), offset_key(GROUP, Place("t", 0)))
            before = [await groups.store.load(key) for key in keys]
            groups.clock.ms += 1
            joined = await groups.join(joined.member_id)
            await groups.sync(joined, {joined.member_id: b"all"})
            assert await groups.commit(2, joined) == ""
            for key, document in zip(keys, before, strict=True):
                assert await groups.store.store.save(key, document, await groups.store.load(key))
            assert (await groups.join(joined.member_id)).fault == "NOT_COORDINATOR"
            await until(lambda: groups.groups.describe(GROUP)[1] is not None)
            assert describe(groups) == (State.STABLE, 2)
            assert groups.groups.heartbeat(GROUP, joined.member_id, None, 2) == ""
            assert await groups.fetch() == 2

    asyncio.run(run())
    assert "lost" in caplog.text


def test_after_a_broken_history_everything_is_compared(tmp_path: Path) -> None:
    async def run() -> None:
        async with run_groups(tmp_path) as groups:
            joined = await groups.form()
            assert await groups.commit(1, joined) == ""
            key = offset_key(GROUP, Place("t", 0))
            assert await groups.store.store.save(key, None, await groups.store.load(key))
            groups.groups.restore()
            assert await groups.fetch() == 1  # nothing has happened to the history yet
            groups.broker._host.forks += 1
            groups.groups.restore()
            await until(lambda: groups.groups.describe(GROUP)[1] is not None)
            assert await groups.fetch() == 1
            assert await groups.store.load(key) is not None
            assert groups.groups.heartbeat(GROUP, joined.member_id, None, 1) == ""

    asyncio.run(run())


def test_commits_are_seen_by_whoever_learns_of_the_next_generation(tmp_path: Path) -> None:
    async def run() -> None:
        async with run_groups(tmp_path) as groups:
            joined = await groups.form()
            groups.store.hold = asyncio.Event()
            committing = asyncio.create_task(groups.commit(7, joined))
            await until(lambda: groups.store.saves == 3)
            joining = groups.join(joined.member_id)
            await asyncio.sleep(0.01)
            assert groups.store.saves == 3  # the generation waits for the commit
            groups.store.hold.set()
            assert (await joining).generation == 2
            assert await groups.fetch() == 7
            assert await committing == ""

    asyncio.run(run())


def test_commits_that_come_while_one_is_written_are_written_together(tmp_path: Path) -> None:
    async def run() -> None:
        async with run_groups(tmp_path) as groups:
            joined = await groups.form()
            groups.store.hold = asyncio.Event()
            before = groups.store.saves
            commits = [asyncio.create_task(groups.commit(0, joined))]
            await until(lambda: groups.store.saves == before + 1)
            commits += [asyncio.create_task(groups.commit(offset, joined)) for offset in range(1, 100)]
            await asyncio.sleep(0)
            groups.store.hold.set()
            assert set(await asyncio.gather(*commits)) == {""}
            assert groups.store.saves == before + 2
            assert await groups.fetch() == 99

    asyncio.run(run())


def test_what_may_be_committed(tmp_path: Path) -> None:
    async def run() -> None:
        async with run_groups(tmp_path) as groups:
            assert await groups.commit(1, topic="unknown") == "UNKNOWN_TOPIC_OR_PARTITION"
            assert await groups.commit(1, metadata="x" * 4096) == ""
            assert await groups.commit(2, metadata="x" * 4097) == "OFFSET_METADATA_TOO_LARGE"
            assert await groups.commit(2, metadata="é" * 2049) == "OFFSET_METADATA_TOO_LARGE"
            assert await groups.fetch() == 1

    asyncio.run(run())


def test_a_topic_made_anew_has_no_commits(tmp_path: Path) -> None:
    async def run() -> None:
        async with run_groups(tmp_path) as groups:
            assert await groups.commit(5) == ""
            topic = groups.broker.topics.get("t")
            assert topic is not None
            await groups.broker.topics.delete(topic)
            assert await groups.fetch() == -1
            await groups.broker.topics.create("t", 2, {})
            assert await groups.fetch() == -1
            assert await groups.groups.fetch(GROUP, None) == ("", {})
            await groups.groups.expire()
            assert groups.groups.list() == ("", [])
            assert await groups.store.scan("groups-") == {}

    asyncio.run(run())


def test_commits_expire_when_their_group_was_empty_for_long(tmp_path: Path) -> None:
    async def run() -> None:
        async with run_groups(tmp_path, "offsets.retention.minutes=10") as groups:
            joined = await groups.form()
            assert await groups.commit(5, joined) == ""
            groups.clock.ms += 20 * MINUTE
            await groups.groups.expire()
            assert await groups.fetch() == 5  # there is somebody
            groups.groups.leave(GROUP, [(joined.member_id, None)])
            groups.clock.ms += 9 * MINUTE
            await groups.groups.expire()
            assert await groups.fetch() == 5
            groups.clock.ms += 1 * MINUTE
            await groups.groups.expire()
            assert await groups.fetch() == -1
            assert groups.groups.describe(GROUP) == ("GROUP_ID_NOT_FOUND", None)
            assert await groups.store.scan("groups-") == {}

    asyncio.run(run())


def test_commits_of_nobody_expire_each_in_its_time(tmp_path: Path) -> None:
    async def run() -> None:
        async with run_groups(tmp_path, "offsets.retention.minutes=10") as groups:
            await groups.broker.topics.create("short", 1, {})
            assert await groups.commit(5) == ""
            assert await groups.commit(6, topic="short", keep_ms=MINUTE) == ""
            groups.clock.ms += MINUTE
            await groups.groups.expire()
            assert (await groups.fetch(), await groups.fetch("short")) == (5, -1)
            groups.clock.ms += 9 * MINUTE
            await groups.groups.expire()
            assert await groups.fetch() == -1

    asyncio.run(run())


def test_a_group_is_deleted_when_nobody_uses_it(tmp_path: Path) -> None:
    async def run() -> None:
        async with run_groups(tmp_path) as groups:
            joined = await groups.form()
            assert await groups.commit(5, joined) == ""
            assert await groups.groups.delete(GROUP) == "NON_EMPTY_GROUP"
            groups.groups.leave(GROUP, [(joined.member_id, None)])
            deleting = asyncio.create_task(groups.groups.delete(GROUP))
            await asyncio.sleep(0)
            assert (await groups.join()).fault == "COORDINATOR_NOT_AVAILABLE"
            assert await deleting == ""
            assert await groups.groups.delete(GROUP) == "GROUP_ID_NOT_FOUND"
            assert await groups.store.scan("groups-") == {}
            assert (await groups.join()).generation == 1

    asyncio.run(run())


def test_a_deletion_that_fails_leaves_the_group(tmp_path: Path) -> None:
    async def run() -> None:
        async with run_groups(tmp_path) as groups:
            assert await groups.commit(5) == ""
            groups.store.refuse = "the disk is gone"
            assert await groups.groups.delete(GROUP) == "COORDINATOR_NOT_AVAILABLE"
            groups.store.refuse = ""
            await until(lambda: groups.groups.describe(GROUP)[1] is not None)
            assert await groups.fetch() == 5

    asyncio.run(run())


def test_offsets_are_deleted_one_by_one(tmp_path: Path) -> None:
    async def run() -> None:
        async with run_groups(tmp_path) as groups:
            await groups.broker.topics.create("u", 1, {})
            assert await groups.commit(5) == ""
            assert await groups.commit(6, topic="u") == ""
            assert await groups.groups.delete_offsets(GROUP, [Place("u", 0), Place("u", 1)]) == ""
            assert (await groups.fetch(), await groups.fetch("u")) == (5, -1)
            assert await groups.groups.delete_offsets("none", [Place("u", 0)]) == "GROUP_ID_NOT_FOUND"

    asyncio.run(run())


def test_groups_that_nothing_came_of_are_forgotten(tmp_path: Path) -> None:
    async def run() -> None:
        async with run_groups(tmp_path) as groups:
            assert (await groups.join(protocols=())).fault == "INCONSISTENT_GROUP_PROTOCOL"
            assert (await groups.join("stranger")).fault == "UNKNOWN_MEMBER_ID"
            assert await groups.commit(1, topic="unknown") == "UNKNOWN_TOPIC_OR_PARTITION"
            assert groups.groups.list() == ("", [])
            assert (await groups.join(twice=True)).fault == "MEMBER_ID_REQUIRED"
            assert len(groups.groups.list()[1]) == 1
            groups.tick(10.0)
            assert groups.groups.list() == ("", [])

    asyncio.run(run())


@pytest.mark.parametrize(
    ("session", "fault"),
    [(5.9, "INVALID_SESSION_TIMEOUT"), (6.0, ""), (1800.0, ""), (1800.1, "INVALID_SESSION_TIMEOUT")],
)
def test_sessions_have_bounds(tmp_path: Path, session: float, fault: str) -> None:
    async def run() -> None:
        async with run_groups(tmp_path) as groups:
            assert (await groups.join(session=session)).fault == fault

    asyncio.run(run())


def test_a_group_needs_a_name(tmp_path: Path) -> None:
    async def run() -> None:
        async with run_groups(tmp_path) as groups:
            assert (await groups.join(group_id="")).fault == "INVALID_GROUP_ID"
            assert groups.groups.heartbeat("", "m", None, 1) == "INVALID_GROUP_ID"
            assert groups.groups.leave("", [("m", None)]) == ("INVALID_GROUP_ID", [])
            assert groups.groups.leave("none", [("m", None)]) == ("", ["UNKNOWN_MEMBER_ID"])

    asyncio.run(run())


def test_at_the_end_whoever_waits_is_sent_away(tmp_path: Path) -> None:
    async def run() -> None:
        async with run_groups(tmp_path, "group.initial.rebalance.delay.ms=3000") as groups:
            joining = groups.join()
            groups.groups.close()
            assert (await joining).fault == "NOT_COORDINATOR"
            assert (await groups.join()).fault == "NOT_COORDINATOR"
            assert groups.groups.heartbeat(GROUP, "m", None, 1) == "NOT_COORDINATOR"
            assert await groups.commit(1) == "NOT_COORDINATOR"

    asyncio.run(run())


def test_whoever_stops_waiting_is_answered_and_may_come_back(tmp_path: Path) -> None:
    async def run() -> None:
        async with run_groups(tmp_path) as groups:
            one = await groups.form()
            parked = groups.join()
            groups.groups.withdraw(GROUP, parked)
            assert (await parked).fault == "COORDINATOR_LOAD_IN_PROGRESS"
            assert describe(groups) == (State.PREPARING, 1)
            assert (await groups.join(one.member_id)).generation == 2

    asyncio.run(run())


def test_names_of_groups_may_hold_anything(tmp_path: Path) -> None:
    async def run() -> None:
        names = ["a", "a/b", "a/t/0", "{a}", "ä ö\n", "group/x"]
        async with run_groups(tmp_path / "data") as groups:
            for number, name in enumerate(names):
                place = Place("t", number % 2)
                faults = await groups.groups.commit(name, "", None, -1, {place: Position(number)})
                assert faults == {place: ""}
        async with run_groups(tmp_path / "data") as groups:
            assert [name for name, _ in groups.groups.list()[1]] == sorted(names)
            for number, name in enumerate(names):
                _, found = await groups.groups.fetch(name, None)
                assert {place: commit.offset for place, commit in found.items()} == {Place("t", number % 2): number}

    asyncio.run(run())


def test_keys_say_whose_they_are() -> None:
    assert parse_key(group_key("a/b")) == ("a/b", None)
    assert parse_key(offset_key("a/b", Place("t", 3))) == ("a/b", Place("t", 3))
    assert is_newer(group_key("a"), b'{"generation": 2}', b'{"generation": 1}')
    assert not is_newer(offset_key("a", Place("t", 3)), b'{"ms": 2}', b'{"ms": 2}')
    assert is_newer(offset_key("a", Place("t", 3)), b'{"ms": 2}', None)
