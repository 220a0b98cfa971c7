"""How much a follower asks for at a time, and what is left of a peer that is none."""

import asyncio
import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

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
