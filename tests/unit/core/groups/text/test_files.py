"""How often `groups.json` and `offsets.json` are written: many commits, few writes; none for what changes nothing."""

import asyncio
from collections import Counter
from pathlib import Path

from core_world import World, run_broker
from korvet_fast.core.groups.documents import OffsetAndMetadata, TopicPartition
from korvet_fast.core.groups.text.group import TextJoin
from korvet_fast.core.groups.text_files import GROUPS, OFFSETS
from korvet_fast.errors import NONE

COMMITS = 1_000


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
