"""Errors that a Redis server has answered with, by its own count."""

import time
from collections.abc import Callable

from redis_server import RedisServer


def refusals(server: RedisServer, *codes: str) -> int:
    """How often the server has answered with one of these errors."""
    found = server.info("errorstats")
    return sum(int(found.get(f"errorstat_{code}", "count=0").removeprefix("count=")) for code in codes)


def wait_for_more(count: Callable[[], int], since: int, otherwise: str) -> int:
    """Until what is counted is more than `since`; returns its count. `otherwise`: said where that takes too long."""
    deadline = time.monotonic() + 240
    while (found := count()) <= since:
        assert time.monotonic() < deadline, otherwise
        time.sleep(0.005)
    return found


def wait_for_refusal(server: RedisServer, *codes: str) -> None:
    """Until the server has answered with one of these errors."""
    wait_for_more(lambda: refusals(server, *codes), 0, f"nobody meets {codes}")
