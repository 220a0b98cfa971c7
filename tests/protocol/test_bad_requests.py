"""Bytes that are no request, one by one: every prefix, every damaged number, unknown keys and versions.

The session is called without a socket, so that tens of thousands of cases take seconds; `test_bad_peers` goes over
sockets.
"""

import asyncio
import random
import resource
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from kafka_messages import CATALOG
from kafka_requests import EVERY, request_of
from kafka_server import API_VERSIONS, CREATE_TOPICS, METADATA, RawClient, kafka_server, make_batch, run
from korvet_fast.wire.dialect import CloseConnection
from korvet_fast.wire.kafka.routes import ROUTES
from korvet_fast.wire.kafka.session import Session

ALTER_USER_SCRAM_CREDENTIALS = 51  # librdkafka 2.16 ends it with a byte too many
LONGEST_STRING = 32_767  # bytes that a string of a version that is not flexible can have
ROOM = 512 << 20  # address space that the cases of one test may add


@asynccontextmanager
async def closed_session(data: Path) -> AsyncIterator[Session]:
    """A session whose long polls answer at once, with a limit on memory that turns a wild allocation into an error."""
    async with kafka_server(data, "max.partitions=50") as server:
        dialect = server.dialect
        session = dialect.session("test")
        session.close()
        soft, hard = resource.getrlimit(resource.RLIMIT_AS)
        used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + ROOM, hard))
        try:
            yield session
        finally:
            resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


async def outcome(session: Session, frame: bytes) -> str:
    """ "answered" or "closed"; anything else, an unexpected exception above all, fails the test."""
    try:
        reply = await session.handle(bytearray(frame))
    except CloseConnection:
        return "closed"
    assert isinstance(reply, list)
    return "answered"


@pytest.mark.parametrize("key", sorted(ROUTES))
def test_every_prefix_is_hung_up_on(tmp_path: Path, key: int) -> None:
    async def scenario() -> None:
        async with closed_session(tmp_path) as session:
            for _, version in (pair for pair in EVERY if pair[0] == key):
                whole = request_of(key, version)
                for size in range(len(whole)):
                    assert await outcome(session, whole[:size]) == "closed", (version, size)
                expected = "answered" if key == ALTER_USER_SCRAM_CREDENTIALS else "closed"
                assert await outcome(session, whole + b"\0") == expected
                assert await outcome(session, whole + b"\0\0") == "closed"

    run(scenario)


@pytest.mark.parametrize("key", sorted(ROUTES))
def test_every_damaged_number_is_answered_or_hung_up_on(tmp_path: Path, key: int) -> None:
    async def scenario() -> None:
        async with closed_session(tmp_path) as session:
            for _, version in (pair for pair in EVERY if pair[0] == key):
                whole = request_of(key, version)
                for damage in (
                    b"\x7f\xff\xff\xff",
                    b"\xff\xff\xff\xff",
                    b"\xff\xff\xff\xfe",
                    b"\x80\0\0\0",
                    b"\xff\xff\xff\xff\x0f",
                ):
                    for at in range(8, len(whole) - len(damage)):
                        await outcome(session, whole[:at] + damage + whole[at + len(damage) :])

    run(scenario)


@pytest.mark.parametrize("key", sorted(ROUTES))
def test_the_longest_names_are_answered_with_errors_that_fit(tmp_path: Path, key: int) -> None:
    async def scenario() -> None:
        async with closed_session(tmp_path) as session:
            for _, version in (pair for pair in EVERY if pair[0] == key):
                for text in ("x" * LONGEST_STRING, "\x01" * LONGEST_STRING, "\U00013000" * (LONGEST_STRING // 4)):
                    await outcome(session, request_of(key, version, text, rows=1))

    run(scenario)


def test_random_bytes_behind_a_good_header(tmp_path: Path) -> None:
    async def scenario() -> None:
        chance = random.Random(20)
        async with closed_session(tmp_path) as session:
            for _ in range(3000):
                key, version = chance.choice(EVERY)
                whole = bytearray(request_of(key, version))
                for _ in range(chance.randint(1, 8)):
                    whole[chance.randrange(8, len(whole))] = chance.randrange(256)
                await outcome(session, bytes(whole))
                header = key.to_bytes(2, "big") + version.to_bytes(2, "big") + bytes(4)
                await outcome(session, header + chance.randbytes(chance.randint(0, 200)))

    run(scenario)


def test_unknown_keys_and_versions_are_hung_up_on_unless_there_is_an_answer(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with closed_session(tmp_path) as session:
            for key in (*range(-3, 100), 32767, -32768):
                served = ROUTES.get(key)
                versions = (-1, 0, 99, 32767) if served is None else (-1, served.lowest - 1, served.highest + 1, 32767)
                for version in versions:
                    frame = key.to_bytes(2, "big", signed=True) + version.to_bytes(2, "big", signed=True) + bytes(6)
                    newer = served is not None and version > served.highest
                    told = newer and any(field.name == "error_code" for field in served.message.response_shape.fields)
                    expected = "answered" if told or key == API_VERSIONS else "closed"
                    assert await outcome(session, frame) == expected, (key, version)

    run(scenario)


def test_a_newer_api_versions_learns_what_there_is(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with kafka_server(tmp_path) as server:
            client = await server.connect()
            client.writer.write(b"\0\0\0\x0a" + b"\0\x12\0\x63" + b"\0\0\0\x05" + b"\xff\xff")
            answer = CATALOG[API_VERSIONS].response.decode(await client.raw_reply(), 0, 1000)
            assert (answer["correlation_id"], answer["error_code"]) == (5, 35)
            assert {row["api_key"] for row in answer["api_keys"]} == set(ROUTES)
            assert (await client.ask(API_VERSIONS, 3))["error_code"] == 0  # and may go on

    run(scenario)


def test_more_elements_than_any_request_needs_are_refused(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with closed_session(tmp_path) as session:
            topics = [{"name": ""}] * 200_001
            header = {"api_key": METADATA, "api_version": 4, "correlation_id": 1}
            frame = CATALOG[METADATA].request.encode(header | {"topics": topics}, 4)
            assert await outcome(session, frame) == "closed"

    run(scenario)


def test_a_bug_of_ours_is_logged_and_closes_that_connection(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        async with kafka_server(tmp_path) as server:
            client, other = await server.connect(), await server.connect()

            async def stumble(*_: object, **__: object) -> None:
                raise ZeroDivisionError("a bug of the test")

            with monkeypatch.context() as patch:
                patch.setattr(type(server.broker.topics), "create", stumble)
                topic = {"name": "t", "num_partitions": 1, "replication_factor": 1}
                client.send(CREATE_TOPICS, 7, {"topics": [topic]})
                assert await client.ended() == b""
            assert (await other.create("t"))["error_code"] == 0

    run(scenario)
    assert "ZeroDivisionError: a bug of the test" in caplog.text


def test_requests_in_flight_are_answered_in_order(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with kafka_server(tmp_path) as server:
            client = await server.connect()
            await client.create("t")
            chance = random.Random(7)
            kinds = [chance.randrange(4) for _ in range(500)]
            for kind in kinds:
                _send_any(client, kind)
            for _ in range(500):
                await client.reply()  # which checks the correlation id
            row = await asyncio.wait_for(client.produce("t", make_batch(b"end")), 120)
            assert (row["error_code"], row["base_offset"]) == (0, kinds.count(0) + kinds.count(1))

    run(scenario)


def _send_any(client: RawClient, what: int) -> None:
    if what == 0:
        client.send_produce("t", make_batch(b"x"), acks=-1)
    elif what == 1:
        client.send_produce("t", make_batch(b"x" * 30_000, compression=1), acks=1)
    elif what == 2:
        client.send_fetch("t", 0, max_wait_ms=5, min_bytes=1 << 20)
    else:
        client.send(METADATA, 12, {"topics": None})
