"""The protocol that the first bytes of a connection are taken for, and the cost of requests."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from kafka_requests import EVERY, request_of
from kafka_server import API_VERSIONS, PRODUCE, kafka_server, run
from korvet_fast.wire.dialects import detect_protocol
from korvet_fast.wire.kafka import dialect as kafka_dialect
from korvet_fast.wire.kafka.routes import ROUTES
from korvet_fast.wire.kafka.session import Cost, Session, Values
from raw_connection import reset


def test_other_protocols_are_known_by_their_first_bytes(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with kafka_server(tmp_path) as server:
            dialect = server.dialect
            for first, expected in (
                (b"GET / HTTP/1.1\r\n", "an HTTP request"),
                (b"POST /topics HTTP", "an HTTP request"),
                (b"HEAD / HTTP/1.0\r\n", "an HTTP request"),
                (b"\x16\x03\x01\x02\x00\x01", "a TLS handshake"),
                (b"*1\r\n$4\r\nPING\r\n", "a Redis client"),
                (b"V1|7|PRODUCE|orde", "the text protocol"),
            ):
                said = detect_protocol(first, dialect)
                assert said is not None
                assert expected in said
            for key, version in EVERY:
                request = request_of(key, version)
                assert detect_protocol(len(request).to_bytes(4, "big") + request[:12], dialect) is None

    run(scenario)


@pytest.mark.parametrize(("key", "factor"), [(PRODUCE, 1), (API_VERSIONS, 32)])
def test_records_cost_what_they_are_and_structure_more(tmp_path: Path, key: int, factor: int) -> None:
    async def scenario() -> None:
        async with kafka_server(tmp_path) as server:
            dialect = server.dialect
            frame = bytearray(request_of(key, 3))
            assert dialect.session("test").cost(frame) == factor * len(frame)

    run(scenario)


def test_a_costly_answer_waits_for_memory_before_its_work_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        gate = asyncio.get_running_loop().create_future()
        started: list[str] = []

        async def slow(session: Session, _: Values, __: int) -> Values:
            started.append(session.peer)
            await gate
            return {}

        route = replace(ROUTES[API_VERSIONS], handler=slow, cost=lambda _, __: Cost(3 << 20, 5000))
        monkeypatch.setattr(kafka_dialect, "ROUTES", {**ROUTES, API_VERSIONS: route})
        async with kafka_server(tmp_path, "queued.max.request.bytes=1000000") as server:
            clients = [await server.connect() for _ in range(4)]
            for client in clients:
                client.send(API_VERSIONS, 0, {})
            while server.server.pool.used < 3 << 20 or not started:
                await asyncio.sleep(0.001)
            await asyncio.sleep(0.05)
            assert len(started) == 1  # one may take more than its share, the others wait
            reset(clients[-1].writer)  # and one of these is lost meanwhile
            while len(server.server.connections) > 3:
                await asyncio.sleep(0.001)
            gate.set_result(None)
            for client in clients[:-1]:
                assert (await client.reply())["error_code"] == 0
            assert len(started) == 3
            assert server.broker.request_times["ApiVersions"].waited > 0

    run(scenario)


def test_room_for_an_answer_is_held_while_it_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        gate = asyncio.get_running_loop().create_future()
        rooms: list[int] = []

        async def read(session: Session, _: Values, __: int) -> Values:
            rooms.append(session.answer_room())
            await gate
            return {}

        route = replace(ROUTES[API_VERSIONS], handler=read)
        monkeypatch.setattr(kafka_dialect, "ROUTES", {**ROUTES, API_VERSIONS: route})
        async with kafka_server(tmp_path, "queued.max.request.bytes=16000000") as server:
            clients = [await server.connect() for _ in range(40)]
            for client in clients:
                client.send(API_VERSIONS, 0, {})
            while len(rooms) < 40:
                await asyncio.sleep(0.001)
            assert rooms[0] == 2_000_000
            assert rooms[-1] == 65536
            assert sum(rooms) <= server.server.pool.used < 16_000_000
            gate.set_result(None)
            for client in clients:
                await client.reply()

    run(scenario)
