"""Errors that a Redis server has answered with, by its own count."""

import time

from redis_server import RedisServer


def refusals(server: RedisServer, *codes: str) -> int:
    """How often the server has answered with one of these errors."""
    found = server.info("errorstats")
    return sum(int(found.get(f"errorstat_{code}", "count=0").removeprefix("count=")) for code in codes)


def wait_for_refusal(server: RedisServer, *codes: str, since: int = 0) -> int:
    """Until the server has answered with one of these errors more than `since` times; returns how often it has."""
    deadline = time.monotonic() + 20
    while (found := refusals(server, *codes)) <= since:
        assert time.monotonic() < deadline, f"nobody meets {codes}"
        time.sleep(0.005)
    return found
