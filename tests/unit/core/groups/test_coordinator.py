"""Groups with time and storage: what is told is stored, what is stored comes back, and failures are told as such."""

import asyncio
import logging
import tracemalloc
from pathlib import Path

import pytest

from batches import NOW
from core_world import copy_as_crashed
from group_broker import GROUP, Groups, run_groups, until
from korvet_fast.core.groups.classic.admission import PENDING
from korvet_fast.core.groups.classic.machine import ClassicGroupState
from korvet_fast.core.groups.documents import (
    OffsetAndMetadata,
    TopicPartition,
    group_key,
    is_newer,
    offset_key,
    parse_key,
)


def describe(groups: Groups, group_id: str = GROUP) -> tuple[ClassicGroupState, int]:
    error, group = groups.coordinator.groups.describe(group_id)
    assert group is not None, error
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
            assert describe(groups) == (ClassicGroupState.STABLE, 1)
            assert groups.coordinator.classic.heartbeat(GROUP, joined.member_id, None, 1) == ""
            groups.tick(9.9)  # a full session from the start on
            assert groups.coordinator.classic.heartbeat(GROUP, joined.member_id, None, 1) == ""
            assert (await groups.sync(joined)).assignment == b"all"
            _, found = await groups.coordinator.offsets.fetch(GROUP, None)
            (commit,) = found.values()
            assert (commit.offset, commit.leader_epoch, commit.metadata, commit.committed_at) == (42, 3, "note", NOW)
            groups.tick(10.0)
            assert describe(groups) == (ClassicGroupState.EMPTY, 2)

    asyncio.run(run())


def test_a_rebalance_cut_short_goes_on_after_a_restart(tmp_path: Path) -> None:
    async def run() -> None:
        async with run_groups(tmp_path / "data") as groups:
            joined = await groups.join()
            copy_as_crashed(tmp_path / "data", tmp_path / "image")
        async with run_groups(tmp_path / "image") as groups:
            assert describe(groups) == (ClassicGroupState.COMPLETING, 1)
            assert (await groups.sync(joined, {joined.member_id: b"all"})).assignment == b"all"

    asyncio.run(run())


def test_a_silent_member_expires_by_itself(tmp_path: Path) -> None:
    async def run() -> None:
        async with run_groups(tmp_path, "group.min.session.timeout.ms=1") as groups:
            loop = asyncio.get_running_loop()
            began = loop.time()
            groups.clock.monotonic = loop.time  # type: ignore[method-assign]
            joined = await groups.join(session_timeout=0.05)
            await until(lambda: describe(groups)[0] is ClassicGroupState.EMPTY)
            assert loop.time() - began >= 0.05
            assert groups.coordinator.classic.heartbeat(GROUP, joined.member_id, None, 1) == "UNKNOWN_MEMBER_ID"

    asyncio.run(run())


def test_a_program_that_stood_still_does_not_expire_its_members(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def run() -> None:
        async with run_groups(tmp_path, "group.min.session.timeout.ms=1") as groups:
            loop = asyncio.get_running_loop()
            skipped = 0.0
            groups.clock.monotonic = lambda: loop.time() + skipped  # type: ignore[method-assign]
            joined = await groups.join(session_timeout=20.0)
            skipped = 50.0
            (runtime,) = groups.coordinator.partitions.runtimes
            runtime.wake(50.0)
            assert groups.coordinator.classic.heartbeat(GROUP, joined.member_id, None, 1) == ""

    with caplog.at_level(logging.WARNING):
        asyncio.run(run())
    assert "stood still" in caplog.text


@pytest.mark.parametrize("failure", ["refuse", "blind"])
def test_a_group_that_cannot_be_stored_is_loaded_again(tmp_path: Path, failure: str) -> None:
    async def run() -> None:
        async with run_groups(tmp_path) as groups:
            joined = await groups.form()
            error = "COORDINATOR_NOT_AVAILABLE" if failure == "refuse" else "NOT_COORDINATOR"
            setattr(groups.store, failure, True if failure == "blind" else "the disk is gone")
            groups.store.unreadable = True
            joining = groups.join(joined.member_id)
            delayed = groups.join()
            assert (await joining).error == error
            assert groups.coordinator.classic.heartbeat(GROUP, joined.member_id, None, 1) == ""
            assert (await groups.join(joined.member_id)).error == "COORDINATOR_LOAD_IN_PROGRESS"
            assert (await groups.sync(joined)).error == "REBALANCE_IN_PROGRESS"
            assert await groups.commit(1, joined) == "COORDINATOR_LOAD_IN_PROGRESS"
            assert groups.coordinator.groups.list() == ("COORDINATOR_LOAD_IN_PROGRESS", [])
            assert (await delayed).error == error
            groups.store.unreadable = False
            setattr(groups.store, failure, False if failure == "blind" else "")
            await until(lambda: groups.coordinator.groups.describe(GROUP)[1] is not None)
            assert describe(groups) == (ClassicGroupState.STABLE, 1)
            assert (await groups.join(joined.member_id)).generation == 2

    asyncio.run(run())


def test_a_store_that_forgot_is_told_again(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """No generation comes twice, no commit is lost, and members do not notice."""

    async def run() -> None:
        async with run_groups(tmp_path) as groups:
            joined = await groups.form()
            assert await groups.commit(1, joined) == ""
            keys = (group_key(GROUP), offset_key(GROUP, TopicPartition("t", 0)))
            before = [await groups.store.load(key) for key in keys]
            groups.clock.ms += 1
            joined = await groups.join(joined.member_id)
            await groups.sync(joined, {joined.member_id: b"all"})
            assert await groups.commit(2, joined) == ""
            for key, document in zip(keys, before, strict=True):
                assert await groups.store.store.save(key, document, await groups.store.load(key))
            assert (await groups.join(joined.member_id)).error == "NOT_COORDINATOR"
            await until(lambda: groups.coordinator.groups.describe(GROUP)[1] is not None)
            assert describe(groups) == (ClassicGroupState.STABLE, 2)
            assert groups.coordinator.classic.heartbeat(GROUP, joined.member_id, None, 2) == ""
            assert await groups.fetch() == 2

    asyncio.run(run())
    assert "lost" in caplog.text


def test_after_a_broken_history_everything_is_compared(tmp_path: Path) -> None:
    async def run() -> None:
        async with run_groups(tmp_path) as groups:
            joined = await groups.form()
            assert await groups.commit(1, joined) == ""
            key = offset_key(GROUP, TopicPartition("t", 0))
            assert await groups.store.store.save(key, None, await groups.store.load(key))
            groups.coordinator.partitions.restore()
            assert await groups.fetch() == 1  # nothing has happened to the history yet
            groups.broker.generation.number += 1
            groups.coordinator.partitions.restore()
            await until(lambda: groups.coordinator.groups.describe(GROUP)[1] is not None)
            assert await groups.fetch() == 1
            assert await groups.store.load(key) is not None
            assert groups.coordinator.classic.heartbeat(GROUP, joined.member_id, None, 1) == ""

    asyncio.run(run())


def test_a_group_is_deleted_when_nobody_uses_it(tmp_path: Path) -> None:
    async def run() -> None:
        async with run_groups(tmp_path) as groups:
            joined = await groups.form()
            assert await groups.commit(5, joined) == ""
            assert await groups.coordinator.groups.delete(GROUP) == "NON_EMPTY_GROUP"
            groups.coordinator.classic.leave(GROUP, [(joined.member_id, None)])
            deleting = asyncio.create_task(groups.coordinator.groups.delete(GROUP))
            await asyncio.sleep(0)
            assert (await groups.join()).error == "COORDINATOR_NOT_AVAILABLE"
            assert await deleting == ""
            assert await groups.coordinator.groups.delete(GROUP) == "GROUP_ID_NOT_FOUND"
            assert await groups.store.scan("groups-") == {}
            assert (await groups.join()).generation == 1

    asyncio.run(run())


def test_a_deletion_that_fails_leaves_the_group(tmp_path: Path) -> None:
    async def run() -> None:
        async with run_groups(tmp_path) as groups:
            assert await groups.commit(5) == ""
            groups.store.refuse = "the disk is gone"
            assert await groups.coordinator.groups.delete(GROUP) == "COORDINATOR_NOT_AVAILABLE"
            groups.store.refuse = ""
            await until(lambda: groups.coordinator.groups.describe(GROUP)[1] is not None)
            assert await groups.fetch() == 5

    asyncio.run(run())


def test_groups_that_nothing_came_of_are_forgotten(tmp_path: Path) -> None:
    async def run() -> None:
        async with run_groups(tmp_path) as groups:
            assert (await groups.join(protocols=())).error == "INCONSISTENT_GROUP_PROTOCOL"
            assert (await groups.join("stranger")).error == "UNKNOWN_MEMBER_ID"
            assert await groups.commit(1, topic="unknown") == "UNKNOWN_TOPIC_OR_PARTITION"
            assert groups.coordinator.groups.list() == ("", [])
            assert (await groups.join(requires_member_id=True)).error == "MEMBER_ID_REQUIRED"
            assert len(groups.coordinator.groups.list()[1]) == 1
            groups.tick(10.0)
            assert groups.coordinator.groups.list() == ("", [])

    asyncio.run(run())


@pytest.mark.parametrize(
    ("session", "error"),
    [(5.9, "INVALID_SESSION_TIMEOUT"), (6.0, ""), (1800.0, ""), (1800.1, "INVALID_SESSION_TIMEOUT")],
)
def test_sessions_have_bounds(tmp_path: Path, session: float, error: str) -> None:
    async def run() -> None:
        async with run_groups(tmp_path) as groups:
            assert (await groups.join(session_timeout=session)).error == error

    asyncio.run(run())


def test_a_group_needs_a_name(tmp_path: Path) -> None:
    async def run() -> None:
        async with run_groups(tmp_path) as groups:
            assert (await groups.join(group_id="")).error == "INVALID_GROUP_ID"
            assert groups.coordinator.classic.heartbeat("", "m", None, 1) == "INVALID_GROUP_ID"
            assert groups.coordinator.classic.leave("", [("m", None)]) == ("INVALID_GROUP_ID", [])
            assert groups.coordinator.classic.leave("none", [("m", None)]) == ("", ["UNKNOWN_MEMBER_ID"])

    asyncio.run(run())


def test_at_the_end_whoever_waits_is_sent_away(tmp_path: Path) -> None:
    async def run() -> None:
        async with run_groups(tmp_path, "group.initial.rebalance.delay.ms=3000") as groups:
            joining = groups.join()
            groups.coordinator.close()
            assert (await joining).error == "NOT_COORDINATOR"
            assert (await groups.join()).error == "NOT_COORDINATOR"
            assert groups.coordinator.classic.heartbeat(GROUP, "m", None, 1) == "NOT_COORDINATOR"
            assert await groups.commit(1) == "NOT_COORDINATOR"

    asyncio.run(run())


def test_whoever_stops_waiting_is_answered_and_may_come_back(tmp_path: Path) -> None:
    async def run() -> None:
        async with run_groups(tmp_path) as groups:
            one = await groups.form()
            delayed = groups.join()
            groups.coordinator.classic.withdraw(GROUP, delayed)
            assert (await delayed).error == "COORDINATOR_LOAD_IN_PROGRESS"
            assert describe(groups) == (ClassicGroupState.PREPARING, 1)
            assert (await groups.join(one.member_id)).generation == 2

    asyncio.run(run())


def test_names_of_groups_may_hold_anything(tmp_path: Path) -> None:
    async def run() -> None:
        names = ["a", "a/b", "a/t/0", "{a}", "ä ö\n", "group/x"]
        async with run_groups(tmp_path / "data") as groups:
            for number, name in enumerate(names):
                partition = TopicPartition("t", number % 2)
                errors = await groups.coordinator.offsets.commit(
                    name, "", None, -1, {partition: OffsetAndMetadata(number)}
                )
                assert errors == {partition: ""}
        async with run_groups(tmp_path / "data") as groups:
            assert [name for name, _ in groups.coordinator.groups.list()[1]] == sorted(names)
            for number, name in enumerate(names):
                _, found = await groups.coordinator.offsets.fetch(name, None)
                assert {partition: commit.offset for partition, commit in found.items()} == {
                    TopicPartition("t", number % 2): number
                }

    asyncio.run(run())


def test_keys_say_whose_they_are() -> None:
    assert parse_key(group_key("a/b")) == ("a/b", None)
    assert parse_key(offset_key("a/b", TopicPartition("t", 3))) == ("a/b", TopicPartition("t", 3))
    assert is_newer(group_key("a"), b'{"generation": 2}', b'{"generation": 1}')
    assert not is_newer(offset_key("a", TopicPartition("t", 3)), b'{"ms": 2}', b'{"ms": 2}')
    assert is_newer(offset_key("a", TopicPartition("t", 3)), b'{"ms": 2}', None)


def test_finding_3_2_an_id_given_out_is_void_after_a_minute_and_so_is_its_group(tmp_path: Path) -> None:
    async def run() -> None:
        async with run_groups(tmp_path) as groups:
            answers = [
                await groups.join(group_id=f"g{number}", requires_member_id=True, session_timeout=1800)
                for number in range(50)
            ]
            assert {answer.error for answer in answers} == {"MEMBER_ID_REQUIRED"}
            groups.tick(59.0)
            assert len(groups.coordinator.groups.list()[1]) == 50
            late = groups.join(answers[0].member_id, "g0", requires_member_id=True, session_timeout=1800)
            groups.tick(1.1)
            assert [group_id for group_id, _ in groups.coordinator.groups.list()[1]] == ["g0"]
            groups.tick(3.0)
            assert (await late).error == ""

    asyncio.run(run())


def test_finding_3_2_of_too_many_ids_given_out_the_oldest_is_void(tmp_path: Path) -> None:
    async def run() -> None:
        async with run_groups(tmp_path) as groups:
            first = await groups.join(group_id="first", requires_member_id=True)
            for number in range(PENDING + 10):
                await groups.join(group_id=f"g{number}", requires_member_id=True)
            assert len(groups.coordinator.groups.list()[1]) == PENDING
            again = await groups.join(first.member_id, "first", requires_member_id=True)
            assert again.error == "UNKNOWN_MEMBER_ID"  # as if a session had ended: its client begins anew
            assert (await groups.join(group_id="first", requires_member_id=True)).error == "MEMBER_ID_REQUIRED"

    asyncio.run(run())


def test_finding_3_2_nothing_is_kept_of_ids_whose_time_is_over(tmp_path: Path) -> None:
    async def run() -> None:
        async with run_groups(tmp_path) as groups:
            tracemalloc.start()
            for number in range(1000):
                await groups.join(group_id=f"g{number}", requires_member_id=True)
            full, _ = tracemalloc.get_traced_memory()
            groups.tick(61.0)
            await groups.coordinator.expire()
            left, _ = tracemalloc.get_traced_memory()
            assert left < full / 20

    try:
        asyncio.run(run())
    finally:
        tracemalloc.stop()
