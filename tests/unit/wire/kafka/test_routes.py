"""The table of routes: inside its shapes, whole, and what ApiVersions tells of it."""

from pathlib import Path
from typing import Any

import pytest

from kafka_messages import CATALOG
from kafka_requests import EVERY, fill, request_of
from kafka_server import API_VERSIONS, kafka_server, run
from korvet_fast.wire.kafka.routes import ROUTES
from korvet_fast.wire.kafka.shapes.field import NEVER

SERVED = {
    0,
    1,
    2,
    3,
    8,
    9,
    10,
    11,
    12,
    13,
    14,
    15,
    16,
    17,
    18,
    19,
    20,
    21,
    22,
    23,
    29,
    30,
    31,
    32,
    33,
    35,
    36,
    37,
    42,
    43,
    44,
    45,
    46,
    47,
    48,
    49,
    50,
    51,
    55,
    60,
    68,
    69,
    74,
    75,
}


def test_what_is_promised_is_served() -> None:
    assert ROUTES.keys() == SERVED
    for key, route in ROUTES.items():
        assert route.message is CATALOG[key]
        assert route.message.lowest <= route.lowest <= route.highest <= route.message.highest


def same(given: Any, got: Any) -> bool:
    """Whether everything given came back (what has only defaults is added by the decoder)."""
    if isinstance(given, dict):
        return all(same(value, got[name]) for name, value in given.items())
    if isinstance(given, list):
        return len(given) == len(got) and all(map(same, given, got))
    return bool(given == got)


@pytest.mark.parametrize(("key", "version"), EVERY)
def test_every_version_served_round_trips(key: int, version: int) -> None:
    message = ROUTES[key].message
    for schema, shape in ((message.request, message.request_shape), (message.response, message.response_shape)):
        values = fill(shape.fields, version)
        frame = schema.encode(values, version)
        again = schema.decode(frame, version, 1000)
        assert same(values, again)
        assert schema.encode(again, version) == frame
        assert b"".join(schema.frame(values, version))[4:] == frame
        empty = schema.encode({}, version)
        assert schema.encode(schema.decode(empty, version, 1000), version) == empty


def test_never_is_never() -> None:
    assert all(route.highest < NEVER for route in ROUTES.values())


@pytest.mark.parametrize("version", range(5))
def test_api_versions_tells_the_table(tmp_path: Path, version: int) -> None:
    async def scenario() -> None:
        async with kafka_server(tmp_path) as server:
            client = await server.connect()
            answer = await client.ask(API_VERSIONS, version, client_software_name="x", client_software_version="1")
            told = {row["api_key"]: (row["min_version"], row["max_version"]) for row in answer["api_keys"]}
            again = await client.ask(API_VERSIONS, version, client_software_name="y", client_software_version="2")
            assert again == answer | {"correlation_id": again["correlation_id"]}  # it is kept, but for this number
            assert answer["error_code"] == 0
            assert told == {
                key: (route.lowest if key else 0, route.highest) for key, route in ROUTES.items()
            }  # Produce says 0, see the table

    run(scenario)


# What these do does not grow with what the request names: nothing in it can be named often.
CONSTANT = {
    12: "Heartbeat: one member of one group",
    18: "ApiVersions: kept, encoded",
    22: "InitProducerId: one number",
    17: "SaslHandshake: one code",
    36: "SaslAuthenticate: one token",
    29: "DescribeAcls: one code",
    46: "ListPartitionReassignments: always empty",
    60: "DescribeCluster: one row for each broker",
}
CHEAP = (None, (0, 0))
# These ask for their share themselves, as they know it only when they look at partitions and batches.
OF_THEIR_OWN = {0: "Produce", 1: "Fetch"}


def test_every_route_says_its_cost_or_has_a_reason_not_to() -> None:
    assert {key for key, route in ROUTES.items() if route.cost is None} == CONSTANT.keys() | OF_THEIR_OWN.keys()


@pytest.mark.parametrize("key", sorted(SERVED - CONSTANT.keys() - OF_THEIR_OWN.keys()))
def test_a_cost_grows_with_what_the_request_names(tmp_path: Path, key: int) -> None:
    async def scenario() -> None:
        async with kafka_server(tmp_path) as server:
            dialect = server.dialect
            session = dialect.session("test")
            route = ROUTES[key]
            cost = route.cost
            assert cost is not None
            for version in range(route.lowest, route.highest + 1):
                request = route.message.request.decode(request_of(key, version), version, 1000)
                assert cost(session, route.message.request.decode(bare_request(key, version), version, 1000)) in CHEAP
                arrays = [name for name, value in request.items() if isinstance(value, list) and value]
                if not arrays or key in (16, 48):  # ListGroups, client quotas: filters only make the answer shorter
                    continue
                many, more = (
                    cost(session, request | {n: request[n] * times for n in arrays}) for times in (5000, 9000)
                )
                assert many is not None, version
                assert more is not None, version
                assert more.micros > many.micros > 1000
                assert more.answer_bytes >= many.answer_bytes

    run(scenario)


def bare_request(key: int, version: int) -> bytes:
    header = {"api_key": key, "api_version": version, "correlation_id": 1}
    return ROUTES[key].message.request.encode(header, version)
