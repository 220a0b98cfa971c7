"""Work in the background that ends by a defect is heard of."""

import asyncio

import pytest

from korvet_fast.store.redis.background import begin


def test_a_defect_is_told_with_its_traceback(caplog: pytest.LogCaptureFixture) -> None:
    async def break_down() -> None:
        raise ZeroDivisionError("by nothing")

    async def run() -> None:
        kept = begin(break_down())  # those who begin it keep it: it is not collected, and asyncio would say nothing
        await asyncio.wait([kept])

    asyncio.run(run())
    assert "background work failed: by nothing" in caplog.text
    assert "Traceback" in caplog.text


def test_what_ends_well_or_is_cancelled_is_not_told(caplog: pytest.LogCaptureFixture) -> None:
    async def run() -> None:
        good, long = begin(asyncio.sleep(0, "done")), begin(asyncio.sleep(60))
        assert await good == "done"
        long.cancel()
        await asyncio.wait([long])

    asyncio.run(run())
    assert caplog.text == ""
