"""Committed offsets: stored together, seen with the next generation, and expired when nobody uses them."""

import asyncio
from pathlib import Path

import pytest

from group_broker import GROUP, Groups, run_groups, until
from korvet_fast.core.groups.documents import TopicPartition
from korvet_fast.errors import ChangeTooLarge

MINUTE = 60_000


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
            await until(lambda: groups.coordinator.groups.describe(GROUP)[1] is not None)
            assert await groups.fetch() == 1
            assert await groups.commit(4, joined) == ""
            assert await groups.fetch() == 4

    asyncio.run(run())


def test_a_commit_that_is_too_large_for_the_store_is_refused_for_its_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuse(*_: object) -> bool:
        raise ChangeTooLarge("33 MB are too large")

    async def run() -> None:
        async with run_groups(tmp_path) as groups:
            joined = await groups.form()
            with monkeypatch.context() as patched:
                patched.setattr(groups.store, "save", refuse)
                assert await groups.commit(1, joined) == "INVALID_COMMIT_OFFSET_SIZE"
            await until(lambda: groups.coordinator.groups.describe(GROUP)[1] is not None)
            assert await groups.commit(2, joined) == ""
            assert await groups.fetch() == 2

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


def test_who_stops_waiting_for_a_commit_stops_nobody_else(tmp_path: Path) -> None:
    async def run() -> None:
        async with run_groups(tmp_path) as groups:
            joined = await groups.form()
            groups.store.hold = asyncio.Event()
            written = groups.store.saves
            first = asyncio.ensure_future(groups.commit(1, joined))
            await until(lambda: groups.store.saves == written + 1)
            gone, kept = (asyncio.ensure_future(groups.commit(offset, joined)) for offset in (2, 3))
            await asyncio.sleep(0)
            first.cancel()
            gone.cancel()
            await asyncio.wait([first, gone])
            assert not kept.done()
            groups.store.hold.set()
            assert await kept == ""
            assert await groups.fetch() == 3

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
            assert await groups.coordinator.offsets.fetch(GROUP, None) == ("", {})
            await groups.coordinator.offsets.expire()
            assert groups.coordinator.groups.list() == ("", [])
            assert await groups.store.scan("groups-") == {}

    asyncio.run(run())


def pass_time(groups: Groups, ms: int) -> None:
    groups.clock.ms += ms
    groups.clock.seconds += ms / 1000


def test_a_clock_that_is_ahead_for_a_moment_expires_no_commit(tmp_path: Path) -> None:
    async def run() -> None:
        async with run_groups(tmp_path, "offsets.retention.minutes=10") as groups:
            assert await groups.commit(5) == ""
            for step in (0, 20 * MINUTE, -20 * MINUTE, 20 * MINUTE):
                groups.clock.ms += step
                pass_time(groups, MINUTE)
                await groups.coordinator.offsets.expire()
                assert await groups.fetch() == 5
            pass_time(groups, 60 * MINUTE)
            await groups.coordinator.offsets.expire()
            assert await groups.fetch() == -1

    asyncio.run(run())


def test_commits_expire_when_their_group_was_empty_for_long(tmp_path: Path) -> None:
    async def run() -> None:
        async with run_groups(tmp_path, "offsets.retention.minutes=10") as groups:
            joined = await groups.form()
            assert await groups.commit(5, joined) == ""
            pass_time(groups, 20 * MINUTE)
            await groups.coordinator.offsets.expire()
            assert await groups.fetch() == 5  # there is somebody
            groups.coordinator.classic.leave(GROUP, [(joined.member_id, None)])
            pass_time(groups, 9 * MINUTE)
            await groups.coordinator.offsets.expire()
            assert await groups.fetch() == 5
            pass_time(groups, 1 * MINUTE)
            await groups.coordinator.offsets.expire()
            assert await groups.fetch() == -1
            assert groups.coordinator.groups.describe(GROUP) == ("GROUP_ID_NOT_FOUND", None)
            assert await groups.store.scan("groups-") == {}

    asyncio.run(run())


def test_others_have_their_turn_while_many_groups_expire_and_one_made_anew_meanwhile_stays(tmp_path: Path) -> None:
    async def run() -> None:
        async with run_groups(tmp_path) as groups:
            runtimes = groups.coordinator.partitions.runtimes
            names = [f"group {number}" for number in range(20_000)]
            for name in names:
                runtimes.create(name)  # nothing of it is stored, so nothing of the work waits for the store
            turns, expiring = 0, asyncio.create_task(groups.coordinator.offsets.expire())
            while runtimes.get(names[0]) is not None:
                await asyncio.sleep(0)
            last = runtimes.get(names[-1])
            assert last is not None
            runtimes.forget(last)
            anew = runtimes.create(names[-1])
            while not expiring.done():
                await asyncio.sleep(0)
                turns += 1
            assert turns > 4
            assert list(runtimes) == [anew]

    asyncio.run(run())


def test_commits_of_nobody_expire_each_in_its_time(tmp_path: Path) -> None:
    async def run() -> None:
        async with run_groups(tmp_path, "offsets.retention.minutes=10") as groups:
            await groups.broker.topics.create("short", 1, {})
            assert await groups.commit(5) == ""
            assert await groups.commit(6, topic="short", retention_ms=MINUTE) == ""
            pass_time(groups, MINUTE)
            await groups.coordinator.offsets.expire()
            assert (await groups.fetch(), await groups.fetch("short")) == (5, -1)
            pass_time(groups, 9 * MINUTE)
            await groups.coordinator.offsets.expire()
            assert await groups.fetch() == -1

    asyncio.run(run())


def test_offsets_are_deleted_one_by_one(tmp_path: Path) -> None:
    async def run() -> None:
        async with run_groups(tmp_path) as groups:
            await groups.broker.topics.create("u", 1, {})
            assert await groups.commit(5) == ""
            assert await groups.commit(6, topic="u") == ""
            assert (
                await groups.coordinator.offsets.delete(GROUP, [TopicPartition("u", 0), TopicPartition("u", 1)]) == ""
            )
            assert (await groups.fetch(), await groups.fetch("u")) == (5, -1)
            assert await groups.coordinator.offsets.delete("none", [TopicPartition("u", 0)]) == "GROUP_ID_NOT_FOUND"

    asyncio.run(run())
