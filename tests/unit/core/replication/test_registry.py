"""The leader of the metadata log hangs: whoever asks is told so before a client gives up."""

import asyncio

import pytest

from korvet_fast.core.clock import Clock
from korvet_fast.core.replication import registry
from korvet_fast.core.replication.peers import KeyAnswer, KeyRequest, NotCarriedOut
from korvet_fast.core.replication.registry import Registry
from korvet_fast.errors import OutcomeUnknown, StoreError

PATIENCE = 240.0  # seconds
TOLD = r"no leader that can be reached \(broker 1: no connection\).*--broker N"


@pytest.fixture
def hung(monkeypatch: pytest.MonkeyPatch) -> Registry:
    """It lets one request wait in vain for a connection, and the next one for ever."""
    monkeypatch.setattr(registry, "_PATIENCE", 0.2)
    monkeypatch.setattr(registry, "_ANSWERING", 0.2)
    refused = False

    async def ask(request: KeyRequest) -> KeyAnswer:
        nonlocal refused
        if not refused:
            refused = True
            raise NotCarriedOut("broker 1: no connection")
        await asyncio.Event().wait()
        return KeyAnswer()

    return Registry(Clock(), ask)


async def test_a_question_ends_with_the_reason_and_the_command(hung: Registry) -> None:
    async with asyncio.timeout(PATIENCE):
        with pytest.raises(StoreError, match=TOLD) as e:
            await hung.load("k/1")
    assert not isinstance(e.value, OutcomeUnknown)


async def test_nobody_knows_whether_a_change_was_made(hung: Registry) -> None:
    async with asyncio.timeout(PATIENCE):
        with pytest.raises(OutcomeUnknown, match=TOLD):
            await hung.save("k/1", b"x", None)
    assert "no leader that can be reached" in hung.failure
