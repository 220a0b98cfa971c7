"""Members that join a large group within a moment share one write of its document."""

import asyncio
from collections.abc import Mapping
from pathlib import Path

import pytest

from group_broker import run_groups, until
from korvet_fast.core.groups.documents import group_key
from korvet_fast.core.groups.store import GroupStore
from korvet_fast.core.groups.text.group import TextJoin, TextResult

MEMBERS = 100


async def test_joins_of_a_moment_share_a_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[int] = []  # bytes of the group's documents
    slept: list[float] = []
    release = asyncio.Event()
    write = GroupStore.write

    async def count(store: GroupStore, changes: Mapping[str, bytes | None]) -> None:
        written.append(len(changes[group_key("g")] or b""))
        await write(store, changes)

    async def sleep(seconds: float) -> None:
        slept.append(seconds)
        await release.wait()

    monkeypatch.setattr(GroupStore, "write", count)
    async with run_groups(tmp_path) as groups:
        groups.clock.sleep = sleep  # type: ignore[method-assign]

        def join(number: int) -> "asyncio.Task[TextResult]":
            request = TextJoin(f"{number:0200}", "t", 2, None, "host")
            return asyncio.create_task(groups.coordinator.text.join("g", request))

        first = [join(number) for number in range(MEMBERS)]
        assert {result.error for result in await asyncio.gather(*first)} == {""}
        before = len(written)
        assert before <= 3  # the first member's, and then all others'
        assert not slept
        later = []
        for number in range(MEMBERS, 2 * MEMBERS):
            later.append(join(number))
            await asyncio.sleep(0)
        await until(lambda: len(slept) == 1)
        assert len(written) == before
        release.set()
        assert {(result.error, result.generation) for result in await asyncio.gather(*later)} == {
            ("", MEMBERS + number) for number in range(1, MEMBERS + 1)
        }
        assert len(written) == before + 1
        assert slept == [written[before - 1] / (4 << 20)]
