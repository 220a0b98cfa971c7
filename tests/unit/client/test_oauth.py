"""Where a client's tokens come from: an endpoint that answers well or badly, and functions of every kind."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from korvet_fast.client import oauth
from korvet_fast.client.oauth import ClientCredentials, TokenFunction, open_source
from korvet_fast.client.protocol.errors import ClientError, TokenUnavailable, is_retriable
from korvet_fast.client.protocol.sasl import OAuthLogin, TokenEndpoint
from korvet_fast.endpoint import read_https_url
from korvet_fast.net.https import Answer, HttpsError
from oauth_world import Provider, running_provider

ENDPOINT = read_https_url("https://login.test/token")


@pytest.fixture
def provider(tmp_path: Path) -> Iterator[Provider]:
    with running_provider(tmp_path) as running:
        yield running


def credentials(provider: Provider, user: str = "ann", secret: str = "secret") -> ClientCredentials:
    url = read_https_url(f"{provider.url}/token")
    return ClientCredentials(TokenEndpoint(url, user, secret, "", str(provider.authority.file)))


def test_a_token_is_kept_while_it_lasts_and_shared_by_who_asks_together(provider: Provider) -> None:
    async def scenario() -> None:
        source = credentials(provider, "a:b c")
        assert len(set(await asyncio.gather(*(source.fetch(30) for _ in range(10))))) == 1
        assert len(provider.tokens) == 1
        source._until = 0
        assert await source.fetch(30)
        assert len(provider.tokens) == 2

    asyncio.run(scenario())


def test_a_token_of_unknown_length_is_used_once(provider: Provider) -> None:
    provider.lifetime = 0

    async def scenario() -> None:
        source = credentials(provider)
        assert [bool(await source.fetch(30)) for _ in range(3)] == [True] * 3

    asyncio.run(scenario())
    assert len(provider.tokens) == 3


def test_a_provider_that_is_away_is_asked_again_and_the_former_token_used_until_it_ends(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answers: list[Answer | Exception] = []

    async def fetch(*_: Any) -> Answer:
        if isinstance(answer := answers.pop(0), Exception):
            raise answer
        return answer

    async def scenario() -> None:
        source = ClientCredentials(TokenEndpoint(ENDPOINT, "ann", "secret"))
        for away in (HttpsError("away"), Answer(503, b"")):
            answers.append(away)
            with pytest.raises(TokenUnavailable) as raised:
                await source.fetch(30)
            assert is_retriable(raised.value)
        answers.append(Answer(200, b'{"access_token": "a.b.c", "expires_in": 100}'))
        assert await source.fetch(30) == "a.b.c"
        source._until = 0  # it is time for another one
        answers.append(HttpsError("away"))
        assert await source.fetch(30) == "a.b.c"
        source._ends = 0
        answers.append(HttpsError("away"))
        with pytest.raises(TokenUnavailable):
            await source.fetch(30)
        answers.append(Answer(401, b""))
        with pytest.raises(ClientError) as refused:
            await source.fetch(30)
        assert not is_retriable(refused.value)

    monkeypatch.setattr(oauth, "fetch", fetch)
    asyncio.run(scenario())
    assert answers == []


def test_an_endpoint_that_refuses(provider: Provider) -> None:
    with pytest.raises(
        ClientError, match=r"no token for 'ann': https://\S+/token answers 401: invalid_client who"
    ) as raised:
        asyncio.run(credentials(provider, secret="pear").fetch(30))
    assert "pear" not in str(raised.value)


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (Answer(200, b""), "answers 200: without a token"),
        (Answer(200, b"<html>"), "answers 200: without a token"),
        (Answer(200, b"[" * 100_000), "answers 200: without a token"),
        (Answer(200, b"[]"), "answers 200: without a token"),
        (Answer(200, b'{"access_token": 7}'), "answers 200: without a token"),
        (Answer(200, b'{"access_token": "a.b.c", "expires_in": "soon"}'), "answers 200: without a token"),
        (Answer(500, b'{"access_token": "a.b.c"}'), "answers 500: without a reason"),
        (Answer(302, b""), "answers 302: without a reason"),
        (Answer(400, json.dumps({"error": "x" * 5000}).encode()), "answers 400: x{200}$"),
        (Answer(400, b'{"error": {"a": 1}}'), "answers 400: {'a': 1}"),
        (HttpsError("away"), "no token for 'ann': away"),
    ],
    ids=range(11),
)
def test_answers_without_a_token(monkeypatch: pytest.MonkeyPatch, answer: Answer | Exception, why: str) -> None:
    async def fetch(*_: Any) -> Answer:
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setattr(oauth, "fetch", fetch)
    with pytest.raises(ClientError, match=why):
        asyncio.run(ClientCredentials(TokenEndpoint(ENDPOINT, "ann", "secret")).fetch(30))


class WithToken:
    """As kafka-python's AbstractTokenProvider."""

    def token(self) -> str:
        return "a.b.c"


class WithAsyncToken:
    """As aiokafka's."""

    async def token(self) -> str:
        return "a.b.c"


async def give() -> str:
    return "a.b.c"


@pytest.mark.parametrize("provider", [lambda: "a.b.c", give, WithToken(), WithAsyncToken()])
def test_functions_and_objects(provider: Any) -> None:
    assert asyncio.run(TokenFunction(provider).fetch(30)) == "a.b.c"


def fail() -> str:
    raise OSError("the file is gone")


@pytest.mark.parametrize(
    ("provider", "why"),
    [
        (fail, "gave no token: OSError: the file is gone"),
        (lambda: None, "gave NoneType, and a token is a str"),
        (lambda: b"a.b.c", "gave bytes, and a token is a str"),
        (lambda: asyncio.sleep(60), "gave no token: TimeoutError"),
    ],
)
def test_functions_that_give_none(provider: Any, why: str) -> None:
    with pytest.raises(ClientError, match=why):
        asyncio.run(TokenFunction(provider).fetch(0.2))


def test_all_connections_of_a_login_have_one_source() -> None:
    for wanted, kind in ((TokenEndpoint(ENDPOINT, "ann", "secret"), ClientCredentials), (give, TokenFunction)):
        login = OAuthLogin(wanted)
        assert isinstance(open_source(login), kind)
        assert open_source(login) is open_source(login)
