"""What the broker does not get from the others is told now and then, however often it asks."""

from typing import Any, cast
from unittest.mock import AsyncMock, MagicMock

import pytest

from korvet_fast.core.background import BackgroundTasks
from korvet_fast.core.metadata_sync import MetadataSync
from korvet_fast.errors import StoreError
from korvet_fast.rate_limited_log import RateLimitedLog


async def test_a_registry_that_cannot_be_read_is_told_once_in_a_while(caplog: pytest.LogCaptureFixture) -> None:
    now = 0.0
    log = RateLimitedLog(lambda: now)
    topics, directory = MagicMock(), MagicMock(tell=AsyncMock(side_effect=StoreError("nobody leads")))
    topics.refresh = AsyncMock(side_effect=StoreError("it is damaged"))
    others = [cast(Any, MagicMock()) for _ in range(3)]
    sync = MetadataSync(BackgroundTasks(log), others[0], directory, others[1], topics, others[2], log)
    for _ in range(20):
        sync.sync_soon(True)
        await sync.wait()
    assert topics.refresh.await_count >= 20
    told = [record.getMessage() for record in caplog.records]
    assert told == [
        "the other brokers' changes cannot be read: it is damaged",
        "the other brokers cannot be told which partitions this one leads: nobody leads",
    ]
    now = 60.0
    sync.sync_soon(True)
    await sync.wait()
    assert "more like it since the last line" in caplog.records[-1].getMessage()
