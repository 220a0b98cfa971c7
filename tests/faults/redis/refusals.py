"""Errors that a Redis server has answered with, by its own count."""

import time

from redis_server import RedisServer


def refusals(server: RedisServer, *codes: str) -> int:
    """How often the server has answered with one of these errors."""
    found = server.info("errorstats")
    return sum(int(found.get(f"errorstat_{code}", "count=0").removeprefix("count=")) for code in codes)


def wait_for_refusal(server: RedisServer, *codes: str) -> None:
    """Until the server has answered with one of these errors once more."""
    before, deadline = refusals(server, *codes), time.monotonic() + 20
    while refusals(server, *codes) == before:
        assert time.monotonic() < deadline, f"nobody meets {codes}"
        time.sleep(0.005)
