"""The leader of the metadata log stands still: it takes requests, and answers none. Another one leads all the same."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from korvet_fast.core.replication.replication import Replication
from korvet_fast.errors import OutcomeUnknown
from replicated_scene import ReplicatedScene


def hang(broker: Replication, monkeypatch: pytest.MonkeyPatch, verb: str) -> asyncio.Event:
    """Broker 1 no longer answers what this one asks with this verb of `Peers`; the event: it was asked."""
    peers, asked = broker._peers, asyncio.Event()
    ask = getattr(peers, verb)

    async def ask_in_vain(there: int, *values: Any, **options: Any) -> Any:
        if there != 1:
            return await ask(there, *values, **options)
        asked.set()
        return await asyncio.Event().wait()

    monkeypatch.setattr(peers, verb, ask_in_vain)
    return asked


async def test_a_fetch_that_is_not_answered_holds_up_no_other_leader(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with ReplicatedScene(tmp_path) as scene:
        await scene.copy_metadata()
        await hang(scene.brokers[3], monkeypatch, "fetch").wait()
        scene.isolate(1)
        assert await scene.brokers[2].election.become_leader() == ""
        assert await scene.stores[3].save("k/1", b"x", None)
        assert scene.brokers[3].describe_quorum().leader == 2


async def test_a_load_that_is_not_answered_is_sent_to_the_next_leader(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with ReplicatedScene(tmp_path) as scene:
        assert await scene.stores[1].save("k/1", b"x", None)
        await scene.copy_metadata()
        asked = hang(scene.brokers[3], monkeypatch, "ask_keys")
        loading = asyncio.create_task(scene.stores[3].load("k/1"))
        await asked.wait()
        scene.isolate(1)
        await scene.appoint_metadata(2)
        assert await loading == b"x"


async def test_nobody_knows_what_became_of_a_save_that_is_not_answered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with ReplicatedScene(tmp_path) as scene:
        await scene.copy_metadata()
        asked = hang(scene.brokers[3], monkeypatch, "ask_keys")
        saving = asyncio.create_task(scene.stores[3].save("k/1", b"x", None))
        await asked.wait()
        scene.isolate(1)
        await scene.appoint_metadata(2)
        with pytest.raises(OutcomeUnknown, match="broker 1 did not answer before another one was named"):
            await saving
