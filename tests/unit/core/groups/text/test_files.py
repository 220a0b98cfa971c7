"""How often `groups.json` and `offsets.json` are written: many commits, few writes; none for what changes nothing."""

import asyncio
from collections import Counter
from pathlib import Path

import pytest

from core_world import World, run_broker
from korvet_fast.core import fair_queue
from korvet_fast.core.groups import text_files
from korvet_fast.core.groups.documents import OffsetAndMetadata, TopicPartition
from korvet_fast.core.groups.text.group import TextJoin
from korvet_fast.core.groups.text_files import GROUPS, OFFSETS, RATE
from korvet_fast.errors import NONE

COMMITS = 1_000
GROUP_COUNT = 600  # their lines are written in more than one part


def count_writes(world: World) -> Counter[str]:
    """Writes by the name of the file, from now on."""
    files, seen = world.store.store.plain_files, Counter[str]()
    write = files.write

    async def counted(name: str, data: bytes) -> None:
        seen[name] += 1
        await write(name, data)

    files.write = counted  # type: ignore[method-assign]
    return seen


async def create_topic(world: World) -> None:
    topics = world.broker.topics
    await topics.auto_create("t", topics.changing.open(world.broker))


async def join(world: World, group: str) -> None:
    assert not (await world.broker.groups.text.join(group, TextJoin("c", "t", 4, None, "host"))).error


async def commit(world: World, group: str, offset: int) -> None:
    partition = TopicPartition("t", offset % 4)
    told = await world.broker.groups.offsets.commit(group, "c", None, 1, {partition: OffsetAndMetadata(offset)})
    assert told == {partition: NONE}


def test_commits_that_come_together_are_written_together(tmp_path: Path) -> None:
    async def run() -> None:
        async with run_broker(tmp_path, "num.partitions=4") as world:
            await create_topic(world)
            for group in ("g", "h"):
                await join(world, group)
            seen = count_writes(world)
            await asyncio.gather(*(commit(world, "gh"[number % 2], number) for number in range(COMMITS)))
            assert seen[GROUPS] == 0
            assert 1 <= seen[OFFSETS] <= 4  # the first ones, and all that came while these were written

    asyncio.run(run())


def test_heartbeats_write_nothing(tmp_path: Path) -> None:
    async def run() -> None:
        async with run_broker(tmp_path, "num.partitions=4") as world:
            await create_topic(world)
            await join(world, "g")
            seen = count_writes(world)
            for _ in range(100):
                assert not world.broker.groups.text.heartbeat("g", "t", "c", 1).error
                await join(world, "g")  # who asks again for what it has changes nothing
            assert not seen

    asyncio.run(run())


async def fill(world: World) -> None:
    """Many groups, whose files are too large to be written for each change."""
    await create_topic(world)
    await asyncio.gather(*(join(world, f"g{number}") for number in range(GROUP_COUNT)))


def test_changes_of_large_files_wait_for_one_another(tmp_path: Path) -> None:
    slept: list[float] = []
    release = asyncio.Event()

    async def sleep(seconds: float) -> None:
        slept.append(seconds)
        await release.wait()

    async def run() -> None:
        async with run_broker(tmp_path, "num.partitions=4") as world:
            await fill(world)
            size = sum((tmp_path / name).stat().st_size for name in (GROUPS, OFFSETS))
            await commit(world, "g0", 1)  # the next one comes as soon after it as the files are large
            world.clock.sleep = sleep  # type: ignore[method-assign]
            seen = count_writes(world)
            commits = []
            for number in range(GROUP_COUNT):  # one after the other, each in a turn of the loop of its own
                commits.append(asyncio.create_task(commit(world, f"g{number}", 2)))
                await asyncio.sleep(0)
            assert not seen
            release.set()
            await asyncio.gather(*commits)  # each is answered, after the write
            assert seen == {OFFSETS: 1}
            assert slept == [pytest.approx(size / RATE)]

    asyncio.run(run())


def test_a_commit_encodes_its_group_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    encoded: list[str] = []
    encode = text_files._offset_lines

    async def note(group_id: str, documents: dict[str, bytes]) -> bytes:
        encoded.append(group_id)
        return await encode(group_id, documents)

    async def run() -> None:
        async with run_broker(tmp_path, "num.partitions=4") as world:
            await fill(world)
            monkeypatch.setattr(text_files, "_offset_lines", note)
            await commit(world, "g7", 3)
            assert encoded == ["g7"]
            lines = (tmp_path / OFFSETS).read_bytes().splitlines()
            assert sum(line.startswith(b'"g') for line in lines) == GROUP_COUNT

    asyncio.run(run())


def test_others_have_their_turn_while_a_large_file_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    async def run() -> None:
        lines = [b'"g%d": {}' % number for number in range(10 * text_files._MANY)]
        making = asyncio.create_task(text_files._join(lines))
        turns = 0
        while not making.done():
            await asyncio.sleep(0)
            turns += 1
        assert await making == b"{\n" + b",\n".join(lines) + b"\n}\n"
        assert turns >= 10

    monkeypatch.setattr(fair_queue, "SLICE", 0.0)  # each part is the others' turn, however fast the machine is
    asyncio.run(run())
