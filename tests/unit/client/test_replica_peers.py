"""How much a follower asks for at a time, and what is left of a peer that is none."""

import asyncio
import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from korvet_fast.client import replica_peers as module
from korvet_fast.client.protocol.errors import AuthenticationFailed, ClientError, ConnectionLost, Unreachable
from korvet_fast.client.replica_peers import ReplicaPeers
from korvet_fast.client.security import Security
from korvet_fast.core.replication.peers import FetchPosition, KeyRequest, KeyVerb, NotCarriedOut, VoteRequest
from korvet_fast.core.replication.quorum import LogPosition
from korvet_fast.core.replication.secret import Secret
from korvet_fast.core.replication.static_peers import StaticPeers
from korvet_fast.endpoint import Address
from korvet_fast.errors import ChangeTooLarge, Errors, KorvetError, OutcomeUnknown, StoreError
from korvet_fast.testing import running_broker
from korvet_fast.wire.kafka.errors import translate
from korvet_fast.wire.kafka.shapes.message import Message
from tls_world import Authority

ADDRESSES = {1: Address("127.0.0.1", 1), 2: Address("127.0.0.1", 2)}


@pytest.mark.parametrize(("catching_up", "room"), [(False, 8 << 20), (True, 2 << 20)])
async def test_logs_that_catch_up_take_little_at_a_time(
    monkeypatch: pytest.MonkeyPatch, catching_up: bool, room: int
) -> None:
    asked: list[Mapping[str, Any]] = []

    def request(
        broker: int, purpose: str, message: Message, values: Mapping[str, Any]
    ) -> "asyncio.Future[dict[str, Any]]":
        asked.append(values)
        answer: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        answer.set_result({"responses": []})
        return answer

    peers = ReplicaPeers(StaticPeers(1, ADDRESSES, Secret(b"what all of them know")))
    monkeypatch.setattr(peers, "_request", request)
    assert await peers.fetch(2, [FetchPosition("orders:0", 0, 7)], 0, catching_up=catching_up) == []
    (values,) = asked
    rows = [row for topic in values["topics"] for row in topic["partitions"]]
    assert [values["max_bytes"], *(row["partition_max_bytes"] for row in rows)] == [room, room]


async def test_a_port_where_no_peers_are_served_leaves_no_connection_open() -> None:
    async with running_broker() as address:  # it speaks Kafka's protocol, and knows no Challenge
        port = int(address.rpartition(":")[2])
        addresses = {1: Address("127.0.0.1", 1), 2: Address("127.0.0.1", port)}
        peers = ReplicaPeers(StaticPeers(1, addresses, Secret(b"what all of them know")))
        opened = len(list(Path("/proc/self/fd").iterdir()))
        for _ in range(5):
            with pytest.raises(NotCarriedOut, match="broker 2"):
                await peers.vote(2, VoteRequest(1, 1, LogPosition(0, 0)))
        async with asyncio.timeout(30):
            while len(list(Path("/proc/self/fd").iterdir())) > opened:
                await asyncio.sleep(0.01)


@pytest.mark.parametrize(
    ("shown", "words"),
    [
        ("other authority", "the certificate of 127.0.0.1:{port} is refused: "),
        ("other host", "is not valid for '127.0.0.1'"),
        ("nothing", "no TLS with 127.0.0.1:{port}, which may be a listener without it"),
    ],
)
async def test_a_broker_whose_certificate_is_not_for_it_is_not_asked(tmp_path: Path, shown: str, words: str) -> None:
    authority = Authority(tmp_path)
    (tmp_path / "other").mkdir()
    asked: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append(await reader.read(1))
        writer.close()

    context = None
    if shown != "nothing":
        issuer, host = (
            (authority, "other.org") if shown == "other host" else (Authority(tmp_path / "other"), "127.0.0.1")
        )
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(issuer.issue("server", host))
    async with await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context) as server:
        port = server.sockets[0].getsockname()[1]
        addresses = {1: Address("127.0.0.1", 1), 2: Address("127.0.0.1", port)}
        static = StaticPeers(1, addresses, Secret(b"what all of them know"), tls=True)
        peers = ReplicaPeers(static, Security(tls=True, authorities=str(authority.file)))
        with pytest.raises(NotCarriedOut) as caught:
            await peers.vote(2, VoteRequest(1, 1, LogPosition(0, 0)))
    assert caught.value.detail.startswith("broker 2: ")
    assert words.format(port=port) in caught.value.detail
    assert asked in ([], [b"\x16"])  # of a handshake, to who has no TLS


VOTE = VoteRequest(1, 1, LogPosition(0, 0))
NOT_TRUSTED = AuthenticationFailed("the certificate is refused")
LOST = ConnectionLost("closed the connection")
AWAY = Unreachable("cannot connect")


class OpenConnection:
    """One that came about."""

    failure: ClientError | None = None

    async def close(self) -> None:
        """Nothing is open."""

    async def request(self, *_: object) -> dict[str, Any]:
        position = {"last_epoch": 0, "end_offset": 0, "new": False}
        return {"error_code": 0, "granted": True, "epoch": 1, "leader_id": 2, "elected": True, **position}


class ScriptedPeer:
    """Broker 2, where each attempt to connect ends as `ends` says; the last end stays. `now`: the time."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *ends: ClientError | None) -> None:
        self.ends = list(ends)
        self.tried = 0
        self.now = 0.0
        self.connection = OpenConnection()
        self.peers = ReplicaPeers(StaticPeers(1, ADDRESSES, Secret(b"what all of them know")), Security(tls=True))
        monkeypatch.setattr(module, "connect", self._connect)
        monkeypatch.setattr(module, "introduce", self._introduce)
        monkeypatch.setattr(module, "monotonic", lambda: self.now, raising=False)

    async def _connect(self, *_: object) -> OpenConnection:
        self.tried += 1
        end = self.ends.pop(0) if len(self.ends) > 1 else self.ends[0]
        if end is not None:
            raise end
        return self.connection

    async def _introduce(self, *_: object) -> None:
        """It knows the secret."""

    async def ask(self) -> str:
        """Why it gives no vote; "" if it does."""
        try:
            await self.peers.vote(2, VOTE)
        except StoreError as error:
            return error.detail
        return ""


async def test_a_broker_that_refuses_is_tried_once_a_second_in_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """By all that ask it together."""
    peer = ScriptedPeer(monkeypatch, NOT_TRUSTED)
    said = set()
    for _ in range(1000):
        said.add(await peer.ask())
        with pytest.raises(NotCarriedOut):
            await peer.peers.ask_keys(2, KeyRequest(KeyVerb.VERSION))
        with pytest.raises(NotCarriedOut):
            await peer.peers.fetch(2, [FetchPosition("orders:0", 0, 7)], 0)
        peer.now += 0.02
    assert said == {"broker 2: the certificate is refused"}
    assert 15 < peer.tried < 33  # in 20 s


@pytest.mark.parametrize(
    ("ends", "said"),
    [
        ((NOT_TRUSTED, LOST, NOT_TRUSTED), [NOT_TRUSTED] * 3),  # TCP may lose the reason
        ((LOST, NOT_TRUSTED, LOST), [LOST, NOT_TRUSTED, NOT_TRUSTED]),
        ((NOT_TRUSTED, AWAY, LOST), [NOT_TRUSTED, AWAY, LOST]),  # another one may have been started
        ((NOT_TRUSTED, None, None), [NOT_TRUSTED, "", ""]),
    ],
)
async def test_a_refusal_is_told_in_the_same_words(
    monkeypatch: pytest.MonkeyPatch, ends: tuple[ClientError | None, ...], said: list[object]
) -> None:
    peer = ScriptedPeer(monkeypatch, *ends)
    found = []
    for _ in said:
        found.append(await peer.ask())
        peer.now += 10
    assert found == [f"broker 2: {each}" if each else "" for each in said]


@pytest.mark.parametrize("end", [AWAY, None])
async def test_a_broker_that_is_away_or_was_let_in_is_tried_at_once(
    monkeypatch: pytest.MonkeyPatch, end: ClientError | None
) -> None:
    peer = ScriptedPeer(monkeypatch, NOT_TRUSTED, end)
    await peer.ask()
    peer.now += 10
    for tried in range(2, 10):
        await peer.ask()
        assert peer.tried == tried
        peer.connection.failure = LOST  # of the next one too


async def test_each_day_it_is_told_who_would_let_no_new_connection_in(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A certificate that ends leaves open connections as they are."""
    peer = ScriptedPeer(monkeypatch, None, None, NOT_TRUSTED)
    assert await peer.ask() == ""
    watching = asyncio.ensure_future(peer.peers.watch(daily=0.0))
    async with asyncio.timeout(100):
        while not caplog.messages:
            peer.now += 10
            await asyncio.sleep(0)
    watching.cancel()
    assert peer.tried >= 3  # the first day everything was well
    assert caplog.messages[0].startswith("broker 2: the certificate is refused. Open connections to it go on")
    assert await peer.ask() == ""


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (ChangeTooLarge("33 MB are too large"), ChangeTooLarge),
        (OutcomeUnknown("most brokers do not answer"), OutcomeUnknown),
        (KorvetError(Errors.NOT_LEADER_OR_FOLLOWER, "another broker leads"), NotCarriedOut),
        (StoreError("the disk is gone"), StoreError),
    ],
)
async def test_what_the_leader_of_the_metadata_log_refuses_is_the_same_error_here(
    monkeypatch: pytest.MonkeyPatch, error: KorvetError, expected: type[StoreError]
) -> None:
    async def answer(*_: object) -> dict[str, Any]:
        code, message = translate(error)
        return {"error_code": code, "error_message": message}

    peers = ReplicaPeers(StaticPeers(1, ADDRESSES, Secret(b"what all of them know")))
    monkeypatch.setattr(peers, "_request", answer)
    with pytest.raises(expected) as caught:
        await peers.ask_keys(2, KeyRequest(KeyVerb.SAVE))
    assert type(caught.value) is expected
    assert caught.value.detail == error.detail
