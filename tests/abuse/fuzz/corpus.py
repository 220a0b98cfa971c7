"""Whole requests of every route, without their lengths: recorded ones of real clients, and one with all fields set."""

from kafka_requests import EVERY, request_of
from korvet_fast.wire.kafka.routes import ROUTES
from vectors.vector import load


def recorded() -> list[bytes]:
    """Requests that named clients sent, once each, as far as the route is served in that version."""
    frames = (
        vector.request
        for vector in load()
        if (route := ROUTES.get(vector.api_key)) and route.lowest <= vector.api_version <= route.highest
    )
    return list(dict.fromkeys(frames))


def built() -> list[bytes]:
    """One of every version of every route, from the tables of shapes."""
    return [request_of(key, version) for key, version in EVERY]


def by_route(frames: list[bytes]) -> dict[int, list[bytes]]:
    """API key -> its requests."""
    found: dict[int, list[bytes]] = {}
    for frame in frames:
        found.setdefault(int.from_bytes(frame[:2], "big"), []).append(frame)
    return found
