"""Requests and their answers: which are refused, with what, and when the connection goes on."""

import asyncio
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from http_scene import TOKEN, ask, get, service
from korvet_fast.core.broker import Broker
from korvet_fast.core.broker_state import BrokerState
from korvet_fast.core.fair_executor import FairExecutor
from korvet_fast.core.operator_token import OperatorToken, read_token
from korvet_fast.errors import SettingError
from korvet_fast.wire.http.frames import LIMIT
from korvet_fast.wire.http.routes import ROUTES
from korvet_fast.wire.http.session import Service

REFUSED = {
    "no such path": (get("/nothing"), 404, True),
    "another method": (get("/livez", method="DELETE"), 405, True),
    "a body": (get("/livez", "Content-Length: 3"), 413, False),
    "a body in chunks": (get("/livez", "Transfer-Encoding: chunked"), 413, False),
    "a form in chunks and with a length": (
        get(
            "/create-topic",
            "Content-Type: application/x-www-form-urlencoded",
            "Content-Length: 5",
            "Transfer-Encoding: chunked",
            method="POST",
        )
        + b"0\r\n\r\nGET",
        413,
        False,
    ),
    "two lengths": (get("/livez", "Content-Length: 0", "Content-Length: 7"), 400, False),
    "no host": (b"GET /livez HTTP/1.1\r\n\r\n", 400, False),
    "no request": (b"\r\n\r\n", 400, False),
    "a space before the colon": (get("/livez", "X : 1"), 400, False),
    "bytes": (bytes(range(1, 10)) + b"\r\n\r\n", 400, False),
    "another version": (b"GET /livez HTTP/3.0\r\nHost: 127.0.0.1\r\n\r\n", 505, False),
    "too long": (b"GET /" + b"a" * LIMIT, 431, False),
    "a stranger's name": (get("/livez", host="evil.example:9644"), 421, True),
    "a host that is none": (get("/livez", host="[::1"), 421, True),
}


@pytest.mark.parametrize("case", REFUSED)
def test_requests_that_are_refused(tmp_path: Path, case: str) -> None:
    head, expected, goes_on = REFUSED[case]

    async def scenario() -> None:
        async with service(tmp_path) as given_:
            status, headers, body, went_on = await ask(given_, head)
            assert (status, went_on) == (expected, goes_on), body
            assert body.endswith(b"\n")
            assert f"content-length: {len(body)}".encode() in headers.lower()
            assert (b"connection: close" in headers.lower()) is not goes_on
            assert b"evil" not in body

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        (get("/livez", "Content-Length: 3", method="HEAD"), 413),
        (get("/livez", "Transfer-Encoding: chunked", method="HEAD"), 413),
        (get("/livez", "Transfer-Encoding: chunked", method="HEAD") + b"no size\r\n\r\n", 400),
        (b"HEAD /livez HTTP/3.0\r\nHost: 127.0.0.1\r\n\r\n", 505),
    ],
)
def test_head_that_is_refused_has_no_body_either(tmp_path: Path, head: bytes, expected: int) -> None:
    async def scenario() -> None:
        async with service(tmp_path) as given_:
            status, headers, body, goes_on = await ask(given_, head)
            assert (status, body, goes_on) == (expected, b"", False)
            assert b"connection: close" in headers.lower()

    asyncio.run(scenario())


@given(st.binary(max_size=200))
def test_any_bytes_have_an_answer(tmp_path_factory: pytest.TempPathFactory, noise: bytes) -> None:
    class Nobody:
        cluster = None

    with FairExecutor(1, "test") as workers:
        given_ = Service(Nobody(), 0, ROUTES, workers, OperatorToken(TOKEN))  # type: ignore[arg-type]

        async def scenario() -> None:
            status, _, _, goes_on = await ask(given_, noise + b"\r\n\r\n")
            assert status in (400, 431, 501, 505)
            assert not goes_on

        if not noise.startswith((b"GET", b"HEAD")):
            asyncio.run(scenario())


@pytest.mark.parametrize("host", ["127.0.0.1", "[::1]:9644", "localhost:9644", "10.1.2.3", "LOCALHOST"])
def test_addresses_and_localhost_are_this_broker(tmp_path: Path, host: str) -> None:
    async def scenario() -> None:
        async with service(tmp_path) as given_:
            assert await ask(given_, get("/livez", host=host)) == (200, *(await ask(given_, get("/livez")))[1:])

    asyncio.run(scenario())


def test_the_name_that_is_advertised_is_this_broker(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with service(tmp_path, advertised="broker.example") as given_:
            assert (await ask(given_, get("/livez", host="broker.example:9644")))[0] == 200
            assert (await ask(given_, get("/livez", host="other.example:9644")))[0] == 421

    asyncio.run(scenario())


def test_head_is_get_without_the_body_and_close_is_obeyed(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with service(tmp_path) as given_:
            status, headers, body, goes_on = await ask(given_, get("/livez", method="HEAD"))
            assert (status, body, goes_on) == (200, b"", True)
            assert b"content-length: 3" in headers.lower()
            assert (await ask(given_, get("/livez", "Connection: close")))[2:] == (b"ok\n", False)
            assert (await ask(given_, b"GET /livez HTTP/1.0\r\nHost: localhost\r\n\r\n"))[2:] == (b"ok\n", False)
            assert (await ask(given_, get("/livez?why=probe")))[0] == 200

    asyncio.run(scenario())


def test_readiness_follows_the_broker(tmp_path: Path) -> None:
    async def ready(broker: Broker, given_: Service, state: BrokerState) -> tuple[int, bytes]:
        broker.state = state
        status, _, body, _ = await ask(given_, get("/readyz"))
        return status, body

    async def scenario() -> None:
        async with service(tmp_path) as given_:
            broker = given_.broker
            assert broker.state is BrokerState.RUNNING
            assert await ready(broker, given_, BrokerState.RUNNING) == (200, b"ok\n")
            assert await ready(broker, given_, BrokerState.STARTING) == (503, b"the broker is starting\n")
            await broker.leave()
            assert (await ask(given_, get("/readyz")))[2] == b"the broker is stopping\n"
            assert (await ask(given_, get("/livez")))[0] == 200
            assert await ready(broker, given_, BrokerState.SHUTTING_DOWN) == (503, b"the broker is stopping\n")

    asyncio.run(scenario())


def test_who_guesses_a_token_waits_for_the_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    async def scenario() -> None:
        flags = ("connection.failed.authentication.delay.ms=7000",)
        async with service(tmp_path, TOKEN, flags=flags) as given_:
            monkeypatch.setattr(given_.broker.clock, "sleep", sleep)
            assert (await ask(given_, get("/metrics")))[0] == 401
            assert (await ask(given_, get("/metrics", f"Authorization: Bearer {TOKEN.decode()}")))[0] == 200
            assert waits == []
            assert (await ask(given_, get("/metrics", "Authorization: Bearer guessed")))[0] == 401
            assert waits == [7]

    asyncio.run(scenario())


def test_strangers_are_not_told_why_a_broker_is_not_ready(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with service(tmp_path, TOKEN) as given_:
            assert (await ask(given_, get("/readyz")))[2] == b"ok\n"
            given_.broker.state = BrokerState.STARTING
            status, _, body, _ = await ask(given_, get("/readyz"))
            assert (status, body) == (503, b"not ready\n")
            shown = await ask(given_, get("/readyz", f"Authorization: Bearer {TOKEN.decode()}"))
            assert shown[2] == b"the broker is starting\n"

    asyncio.run(scenario())


def test_a_token_file_is_read_once_and_checked(tmp_path: Path) -> None:
    file = tmp_path / "token"
    with pytest.raises(SettingError, match=r"http\.token\.file: .*: No such file"):
        read_token(str(file))
    file.write_text("short")
    with pytest.raises(SettingError, match="has 5 characters, and needs 16"):
        read_token(str(file))
    file.write_bytes(TOKEN + b"\n")
    token = read_token(str(file))
    assert token is not None
    assert token.equals(TOKEN)
    assert not token.equals(TOKEN + b"0")
    assert not token.equals(b"")
    assert read_token("") is None
