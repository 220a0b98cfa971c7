"""A broker that takes tokens, beside a provider over https: who gets in, for how long, and how often it is asked."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from core_world import MovableClock
from kafka_server import METADATA, SASL_AUTHENTICATE, SASL_HANDSHAKE, KafkaServer, RawClient, frame, kafka_server, run
from korvet_fast.cli.store import make_store
from korvet_fast.client.connection import connect
from korvet_fast.client.producer import AsyncProducer
from korvet_fast.client.protocol.errors import ClientError
from korvet_fast.client.protocol.sasl import OAuthLogin, TokenEndpoint
from korvet_fast.client.security import Security, read_security
from korvet_fast.config import read_settings
from korvet_fast.core.broker import Broker
from korvet_fast.endpoint import Endpoint, read_https_url
from korvet_fast.errors import SettingError
from korvet_fast.net.listeners import Listener
from korvet_fast.net.oauth import open_tokens
from korvet_fast.net.serve import serve_until
from korvet_fast.wire.kafka.dialect import SaslKafkaDialect
from korvet_fast.wire.kafka.shapes import cluster
from oauth_world import (
    Provider,
    always,
    dripping,
    endless,
    make_claims,
    running_provider,
    token_message,
    unsigned,
)
from sasl_world import SHA_256, add_user, log_in, send_token

UNSECURED = ("sasl.enabled.mechanisms=OAUTHBEARER", "sasl.oauthbearer.unsecured.tokens.for.testing=true")
SASL_AUTHENTICATION_FAILED = 58
INVALID = b'{"status":"invalid_token"}'


@pytest.fixture
def provider(tmp_path: Path) -> Iterator[Provider]:
    with running_provider(tmp_path) as running:
        yield running


@asynccontextmanager
async def token_server(data: Path, *settings: str, **options: Any) -> AsyncIterator[KafkaServer]:
    async with kafka_server(data, *settings, dialect_type=SaslKafkaDialect, **options) as server:
        tokens = server.broker.tokens = open_tokens(server.broker)
        yield server
        await tokens.close()


async def show(client: RawClient, token: str, version: int = 2) -> dict[str, Any]:
    """Log in with a token; the answer to it."""
    assert (await client.ask(SASL_HANDSHAKE, 1, mechanism="OAUTHBEARER"))["error_code"] == 0
    return await send_token(client, token_message(token), version)


async def is_let_in(server: KafkaServer, token: str) -> bool | None:
    """Whether a token lets a client in; None: its connection was cut off without an answer."""
    client = await server.connect()
    try:
        answer = await show(client, token)
    except asyncio.IncompleteReadError:
        return None
    assert answer["error_code"] == 0
    return bytes(answer["auth_bytes"]) == b""


@pytest.mark.parametrize("version", range(3))
def test_who_has_a_token_is_served_under_its_name(tmp_path: Path, provider: Provider, version: int) -> None:
    async def scenario() -> None:
        async with token_server(tmp_path / "data", *provider.settings) as server:
            await add_user(server.broker.users, "bob", "pear", SHA_256)
            client = await server.connect()
            answer = await show(client, provider.sign(), version)
            assert (answer["error_code"], bytes(answer["auth_bytes"])) == (0, b"")
            if version:
                assert 300_000 < answer["session_lifetime_ms"] <= 330_000
            assert (await client.ask(METADATA, 9, topics=[]))["cluster_id"]
            assert [each.session.principal for each in server.server.connections] == ["User:ann"]
            other = await server.connect()  # the other mechanisms go on
            assert (await log_in(other, "bob", "pear", SHA_256))["session_lifetime_ms"] == 0
        assert provider.requests == 1

    run(scenario)


@pytest.mark.parametrize("last", [b"\x01", b"", b"another"])
def test_a_refused_token_is_told_so_and_then_the_login_fails(
    tmp_path: Path, provider: Provider, last: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        async with token_server(tmp_path / "data", *provider.settings) as server:
            client = await server.connect()
            answer = await show(client, provider.sign(make_claims(exp=timedelta(seconds=-60))))
            assert (answer["error_code"], bytes(answer["auth_bytes"])) == (0, INVALID)
            assert answer["session_lifetime_ms"] == 0
            answer = await send_token(client, last)
            assert answer["error_code"] == SASL_AUTHENTICATION_FAILED
            assert answer["error_message"].endswith("SASL mechanism OAUTHBEARER")
            assert await client.ended() == b""
            hasty = await server.connect()  # it takes the error for the end
            await show(hasty, provider.sign(make_claims(exp=timedelta(seconds=-60))))
            hasty.send(METADATA, 9, {"topics": []})
            assert await hasty.ended() == b""

    run(scenario)
    assert "it could not log in: OAUTHBEARER: Signature has expired" in caplog.text
    assert "a token of OAUTHBEARER is refused: Signature has expired" in caplog.text


def test_messages_without_requests_as_before_kafka_1_0(tmp_path: Path, provider: Provider) -> None:
    async def scenario() -> None:
        async with token_server(tmp_path / "data", *provider.settings) as server:
            client, wrong = await server.connect(), await server.connect()
            for each in (client, wrong):
                assert (await each.ask(SASL_HANDSHAKE, 0, mechanism="OAUTHBEARER"))["error_code"] == 0
            client.writer.write(frame(token_message(provider.sign())))
            assert await client.raw_reply() == b""
            assert (await client.ask(METADATA, 9, topics=[]))["cluster_id"]
            wrong.writer.write(frame(token_message("a.b.c")))
            assert await wrong.raw_reply() == INVALID
            wrong.writer.write(frame(b"\x01"))
            assert await wrong.ended() == b""

    run(scenario)


@pytest.mark.parametrize(
    "message", [b"", b"n,,\x01\x01", b"\0ann\0pear", b"n,,\x01auth=Bearer " + b"x" * 70_000 + b"\x01\x01"]
)
def test_what_is_no_message_fails_at_once(tmp_path: Path, provider: Provider, message: bytes) -> None:
    async def scenario() -> None:
        async with token_server(tmp_path / "data", *provider.settings) as server:
            client = await server.connect()
            assert (await client.ask(SASL_HANDSHAKE, 1, mechanism="OAUTHBEARER"))["error_code"] == 0
            assert (await send_token(client, message))["error_code"] == SASL_AUTHENTICATION_FAILED
            assert await client.ended() == b""

    run(scenario)


def test_a_message_above_the_limit_of_strangers_ends_the_connection(tmp_path: Path, provider: Provider) -> None:
    async def scenario() -> None:
        settings = (*provider.settings, "sasl.server.max.receive.size=4096")
        async with token_server(tmp_path / "data", *settings) as server:
            client = await server.connect()
            assert (await client.ask(SASL_HANDSHAKE, 1, mechanism="OAUTHBEARER"))["error_code"] == 0
            client.send(SASL_AUTHENTICATE, 2, {"auth_bytes": token_message("x" * 5000)}, answered=False)
            assert await client.ended() == b""

    run(scenario)


def test_the_login_ends_with_the_token_and_another_token_goes_on(tmp_path: Path, provider: Provider) -> None:
    clock = MovableClock()

    async def scenario() -> None:
        async with token_server(tmp_path / "data", *provider.settings, clock=clock) as server:
            ends, renews, turns = [await server.connect() for _ in range(3)]
            for each in (ends, renews, turns):
                assert (await show(each, provider.sign()))["error_code"] == 0
            clock.ahead += 200
            answer = await show(renews, provider.sign(make_claims(exp=timedelta(seconds=900))))
            assert 900_000 < answer["session_lifetime_ms"] <= 930_000
            answer = await show(turns, provider.sign(make_claims("bob")))
            assert answer["error_code"] == SASL_AUTHENTICATION_FAILED  # nobody becomes another
            assert await turns.ended() == b""
            clock.ahead += 131
            assert (await renews.ask(METADATA, 9, topics=[]))["cluster_id"]
            ends.send(METADATA, 9, {"topics": []}, answered=False)
            assert await ends.ended() == b""

    run(scenario)


def test_a_login_may_hold_shorter_than_its_token(tmp_path: Path, provider: Provider) -> None:
    async def scenario() -> None:
        settings = (*provider.settings, "connections.max.reauth.ms=60000")
        async with token_server(tmp_path / "data", *settings) as server:
            client, short = await server.connect(), await server.connect()
            assert (await show(client, provider.sign()))["session_lifetime_ms"] == 60_000
            soon = provider.sign(make_claims(exp=timedelta(seconds=10)))
            assert 30_000 < (await show(short, soon))["session_lifetime_ms"] <= 40_000

    run(scenario)


def test_a_flood_of_unknown_keys_is_not_one_of_fetches(tmp_path: Path, provider: Provider) -> None:
    stranger = ec.generate_private_key(ec.SECP256R1())
    clock = MovableClock()

    async def scenario() -> None:
        async with token_server(tmp_path / "data", *provider.settings, clock=clock) as server:
            assert await is_let_in(server, provider.sign())
            for _ in range(3):
                clock.ahead += 20
                made = [jwt.encode(make_claims(), stranger, "ES256", {"kid": f"{number}"}) for number in range(60)]
                assert not any(await asyncio.gather(*(is_let_in(server, token) for token in made)))
            assert await is_let_in(server, provider.sign())

    run(scenario)
    assert provider.requests == 4


def test_a_provider_that_changes_its_keys(tmp_path: Path, provider: Provider) -> None:
    clock = MovableClock()

    async def scenario() -> None:
        async with token_server(tmp_path / "data", *provider.settings, clock=clock) as server:
            former = provider.sign()
            assert await is_let_in(server, former)
            provider.keys = {"two": ec.generate_private_key(ec.SECP256R1())}
            clock.ahead += 20
            assert await is_let_in(server, provider.sign(key_id="two", algorithm="ES256"))
            assert await is_let_in(server, former) is None  # the provider was asked a moment ago
            clock.ahead += 20
            assert await is_let_in(server, former) is False

    run(scenario)


@pytest.mark.parametrize(
    "behave",
    [always(500), always(302, b"", Location="file:///etc/passwd"), always(200, b"<html>"), endless, dripping],
    ids=["500", "redirect", "html", "endless", "dripping"],
)
def test_without_keys_nobody_gets_in_and_the_others_do(
    tmp_path: Path, provider: Provider, behave: Any, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("korvet_fast.net.oauth._PATIENCE", 1.0)
    provider.behave = behave
    clock = MovableClock()

    async def scenario() -> None:
        async with token_server(tmp_path / "data", *provider.settings, clock=clock) as server:
            await add_user(server.broker.users, "bob", "pear", SHA_256)
            assert await is_let_in(server, provider.sign()) is None  # cut off: it may try again
            assert (await log_in(await server.connect(), "bob", "pear", SHA_256))["error_code"] == 0
            provider.behave = None
            clock.ahead += 11
            assert await is_let_in(server, provider.sign())

    run(scenario)
    assert "nobody can log in now: the keys of sasl.oauthbearer.jwks.endpoint.url cannot be fetched" in caplog.text


def test_unsecured_tokens_only_where_the_setting_says_so(tmp_path: Path, provider: Provider) -> None:
    async def scenario() -> None:
        token = unsigned(make_claims("anybody", iss=None, aud=None))
        async with token_server(tmp_path / "one", *UNSECURED) as server:
            assert await is_let_in(server, token)
            assert await is_let_in(server, provider.sign()) is False
        async with token_server(tmp_path / "two", *provider.settings) as server:
            assert await is_let_in(server, unsigned(make_claims())) is False

    run(scenario)


def start(data: Path, *settings: str) -> None:
    """Have a broker with these settings begin, and end."""

    async def scenario() -> None:
        given = read_settings(settings)
        store, _ = make_store(data, given)
        stop = asyncio.Event()
        listeners = [Listener(Endpoint("kafka+sasl", "127.0.0.1", 0))]
        await serve_until(stop, Broker(store, given), listeners, lambda _: stop.set())

    run(scenario)


URL = "sasl.oauthbearer.jwks.endpoint.url"


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ([], f"say whose tokens are good: --set {URL}"),
        ([f"{URL}=http://127.0.0.1/keys"], "must be as in https://"),
        ([f"{URL}=file:///etc/keys.json"], "must be as in https://"),
        ([f"{URL}=https://ann:pear@127.0.0.1/keys"], "must be as in https://"),
        ([f"{URL}=https://127.0.0.1:x/keys"], "cannot be used; it must be an address that begins with https://"),
        ([f"{URL}=https://127.0.0.1/keys", "https.ca.location=/nowhere.pem"], "https.ca.location: /nowhere.pem cannot"),
        ([f"{URL}=https://127.0.0.1/keys", UNSECURED[1]], "tokens that nobody has signed: leave it out"),
        (["sasl.oauthbearer.sub.claim.name="], "must be as in sub"),
        (["sasl.oauthbearer.clock.skew.seconds=86400"], "a whole number from 0 to 600"),
    ],
)
def test_settings_under_which_no_broker_starts(tmp_path: Path, settings: list[str], why: str) -> None:
    with pytest.raises(SettingError) as raised:
        start(tmp_path, "sasl.enabled.mechanisms=OAUTHBEARER", *settings)
    assert why in str(raised.value)


def test_without_pyjwt_the_broker_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    for name in [name for name in sys.modules if name in ("korvet_fast.net.oauth", "jwt")]:
        monkeypatch.delitem(sys.modules, name)
    for name in ("korvet_fast.core.authentication.jwks", "korvet_fast.core.authentication.token_verifier"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setattr(sys, "meta_path", [_Without("jwt"), *sys.meta_path])
    with pytest.raises(SettingError, match=r"needs PyJWT: pip install 'korvet-fast\[oauth\]'"):
        start(tmp_path / "one", "sasl.enabled.mechanisms=OAUTHBEARER")
    start(tmp_path / "two")  # the others need none


class _Without:
    """Finds no module of this name."""

    def __init__(self, name: str) -> None:
        self.name = name

    def find_spec(self, name: str, *_: object) -> None:
        if name == self.name:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def test_a_broker_fetches_the_keys_when_it_starts_and_stops_without_waiting_for_them(
    tmp_path: Path, provider: Provider
) -> None:
    provider.behave = dripping
    start(tmp_path / "data", *provider.settings)


def client_login(provider: Provider, user: str = "ann", secret: str = "secret") -> Security:
    endpoint = read_https_url(f"{provider.url}/token")
    wanted = TokenEndpoint(endpoint, user, secret, "kafka.read", str(provider.authority.file))
    return Security(login=OAuthLogin(wanted))


def test_our_client_gets_its_token_from_the_provider_and_logs_in_again(
    tmp_path: Path, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    provider.lifetime = 600
    clock = MovableClock()
    monkeypatch.setattr("korvet_fast.client.oauth.time", clock)

    async def scenario() -> None:
        settings = (*provider.settings, "sasl.oauthbearer.clock.skew.seconds=0")
        async with token_server(tmp_path / "data", *settings, clock=clock) as server:
            security = client_login(provider, "a shop:1")
            connections = [await connect(server.address, 60, security=security) for _ in range(3)]
            assert len(provider.tokens) == 1
            assert provider.tokens[0] == {"grant_type": ["client_credentials"], "scope": ["kafka.read"]}
            assert {each.session.principal for each in server.server.connections} == {"User:a shop:1"}
            now = asyncio.get_running_loop().time
            clock.ahead += 550
            for connection in connections:
                assert 450 < connection._login_ends - now() < 550
                connection._login_ends = now()
                assert (await connection.request(cluster.METADATA, {"topics": []}))["cluster_id"]
                assert connection._login_ends - now() > 450
            assert len(provider.tokens) == 2
            clock.ahead += 100  # the first token is over
            for connection in connections:
                assert (await connection.request(cluster.METADATA, {"topics": []}))["cluster_id"]
            for connection in connections:
                await connection.close()

    run(scenario)


def test_our_client_says_why_it_has_no_token(tmp_path: Path, provider: Provider) -> None:
    async def scenario() -> None:
        async with token_server(tmp_path / "data", *provider.settings) as server:
            with pytest.raises(ClientError, match=r"no token for 'ann': .* answers 401: invalid_client who are you\?"):
                await connect(server.address, 60, security=client_login(provider, secret="wrong"))
            with pytest.raises(ClientError, match=r"as 'the token of .*': Authentication failed"):
                login = OAuthLogin(lambda: "a.b.c")
                await connect(server.address, 60, security=Security(login=login))

    run(scenario)


def test_our_producer_takes_a_function(tmp_path: Path, provider: Provider) -> None:
    async def scenario() -> None:
        async with token_server(tmp_path / "data", *provider.settings) as server:
            producer = AsyncProducer(
                f"{server.address}",
                security_protocol="SASL_PLAINTEXT",
                sasl_mechanism="OAUTHBEARER",
                sasl_oauth_token_provider=provider.sign,
            )
            async with producer:
                await producer.send("fruit", b"a pear")
                await producer.flush()
                assert {each.session.principal for each in server.server.connections} == {"User:ann"}

    run(scenario)


def test_kafkas_names_for_our_client(tmp_path: Path, provider: Provider) -> None:
    module = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
    security = read_security(
        {
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "OAUTHBEARER",
            "sasl.login.callback.handler.class": f"{module.rpartition('.')[0]}.OAuthBearerLoginCallbackHandler",
            "sasl.oauthbearer.token.endpoint.url": f"{provider.url}/token",
            "sasl.jaas.config": f'{module} required clientId="ann" clientSecret="secret" scope="kafka";',
            "https.ca.location": str(provider.authority.file),
        }
    )

    async def scenario() -> None:
        async with token_server(tmp_path / "data", *provider.settings) as server:
            connection = await connect(server.address, 60, security=security)
            assert (await connection.request(cluster.METADATA, {"topics": []}))["cluster_id"]
            await connection.close()

    run(scenario)
    assert provider.tokens[0]["scope"] == ["kafka"]
