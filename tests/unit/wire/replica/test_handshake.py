"""Who connects to a replica listener proves to be a peer before anything else is answered."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from korvet_fast.config import read_settings
from korvet_fast.core.broker import Broker
from korvet_fast.core.fair_executor import FairExecutor
from korvet_fast.core.quotas.entity import DEFAULT, QuotaEntity, QuotaKey
from korvet_fast.core.replication import metadata_log
from korvet_fast.core.replication.leading import ANSWER_BYTES
from korvet_fast.core.replication.peers import FetchedLog, FetchPosition
from korvet_fast.core.replication.replica_fetcher import LONGEST_WAIT_MS
from korvet_fast.core.replication.replication import Replication
from korvet_fast.core.replication.secret import OPERATOR, Secret, make_nonce
from korvet_fast.core.replication.static_peers import StaticPeers, read_static_peers
from korvet_fast.core.replication.store import ReplicatedStore
from korvet_fast.endpoint import Address
from korvet_fast.errors import CodecError, SettingError
from korvet_fast.store.embedded.store import EmbeddedStore
from korvet_fast.wire.dialect import CloseConnection
from korvet_fast.wire.kafka.errors import CODES
from korvet_fast.wire.kafka.shapes.cluster import ELECT_LEADERS
from korvet_fast.wire.kafka.shapes.fetch import FETCH
from korvet_fast.wire.kafka.shapes.message import Message
from korvet_fast.wire.kafka.shapes.offsets import OFFSET_FOR_LEADER_EPOCH
from korvet_fast.wire.replica.dialect import ReplicaDialect
from korvet_fast.wire.replica.session import Session
from korvet_fast.wire.replica.shapes import CHALLENGE, KEYS, PROVE, VOTE
from replicated_scene import ReplicatedScene, ScenePeers

SECRET = Secret(b"what all of them know")
OWN, PEER = 1, 2


class PeerScene:
    """Broker 1's listener, and one connection to it. `frames`: what cuts that connection's bytes."""

    def __init__(self, place: Path, *given: str, replication: Replication | None = None) -> None:
        """`replication`: one that is open."""
        settings = read_settings(given)
        if replication is None:
            static = StaticPeers(OWN, dict.fromkeys((1, 2, 3), Address("", 0)), SECRET)
            peers = ScenePeers(ReplicatedScene(place), OWN)
            replication = Replication(static, EmbeddedStore(place), peers, settings)
        self.broker = broker = Broker(ReplicatedStore(replication), settings, replication=replication)
        dialect = ReplicaDialect(broker, 0, FairExecutor(1, "check"))
        self.frames = dialect.frames()
        self.session: Session = dialect.session("peer")

    async def ask(self, message: Message, version: int = 0, **values: Any) -> dict[str, Any]:
        header = {"api_key": message.key, "api_version": version, "correlation_id": 1, "client_id": "peer"}
        reply = await self.session.handle(bytearray(message.request.encode(header | values, version)))
        return dict(message.response.decode(b"".join(map(bytes, reply))[4:], version, 1000))

    async def challenge(self, broker: int = PEER, expected: int = OWN) -> tuple[bytes, dict[str, Any]]:
        nonce = make_nonce()
        return nonce, await self.ask(CHALLENGE, broker_id=broker, expected_id=expected, nonce=nonce)

    async def enter(self, secret: Secret = SECRET, claimed: int = PEER, broker: int = PEER) -> None:
        """Prove to be broker 2, or say so."""
        nonce, answer = await self.challenge(broker)
        proof = secret.prove(claimed, OWN, answer["nonce"], nonce, accepts=False)
        await self.ask(PROVE, proof=proof)

    async def name_registry_leader(self, election_type: int = 0) -> dict[str, Any]:
        """The answer's row for `@registry`."""
        places = [{"topic": "@registry", "partitions": [0]}]
        answer = await self.ask(ELECT_LEADERS, 2, election_type=election_type, topic_partitions=places)
        ((row,),) = (topic["partition_result"] for topic in answer["replica_election_results"])
        return dict(row)


@pytest.fixture
def scene(tmp_path: Path) -> PeerScene:
    return PeerScene(tmp_path)


def fetch_values(**values: Any) -> dict[str, Any]:
    row = {"partition": 0, "current_leader_epoch": 0, "fetch_offset": 0, "partition_max_bytes": 1}
    topics = [{"topic": "orders", "partitions": [row]}]
    return {"max_wait_ms": 0, "min_bytes": 1, "max_bytes": 1, "topics": topics} | values


async def test_a_peer_comes_in(scene: PeerScene) -> None:
    nonce, answer = await scene.challenge()
    assert SECRET.is_proof(answer["proof"], OWN, PEER, nonce, answer["nonce"], accepts=True)
    await scene.ask(PROVE, proof=SECRET.prove(PEER, OWN, answer["nonce"], nonce, accepts=False))
    answer = await scene.ask(FETCH, 12, **fetch_values(replica_id=PEER))
    assert answer["responses"][0]["partitions"][0]["error_code"] == CODES["NOT_LEADER_OR_FOLLOWER"]
    assert (await scene.ask(KEYS, verb=0, key="k", changes=[]))["error_code"] == CODES["NOT_LEADER_OR_FOLLOWER"]


@pytest.mark.parametrize("message", [FETCH, KEYS, VOTE, ELECT_LEADERS], ids=lambda message: message.name)
async def test_a_stranger_gets_nothing(scene: PeerScene, message: Message) -> None:
    with pytest.raises(CloseConnection, match="has not proved to be one"):
        await scene.session.handle(bytearray(message.key.to_bytes(2, "big") + bytes(40)))


async def test_who_does_not_know_the_secret_stays_outside(scene: PeerScene) -> None:
    with pytest.raises(CloseConnection, match="does not know the secret"):
        await scene.enter(Secret(b"something else that was guessed"))
    assert scene.session.follower == -1


async def test_an_operator_who_knows_the_secret_names_a_leader(scene: PeerScene) -> None:
    """This one's broker is not open yet: it does not know its own promises, and stands for nothing."""
    await scene.enter(claimed=OPERATOR, broker=OPERATOR)
    for election_type in (0, 1):
        row = await scene.name_registry_leader(election_type)
        assert row["error_code"] == CODES["PREFERRED_LEADER_NOT_AVAILABLE"]
        assert row["error_message"].startswith("broker 1 is starting")


async def test_running_brokers_take_an_operators_word_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody can log in by SCRAM, or have rights by ACLs, while nobody leads the metadata log."""
    monkeypatch.setattr(metadata_log, "_PATIENCE", 60.0)
    async with ReplicatedScene(tmp_path) as brokers:
        await brokers.copy_metadata()
        await brokers.stop(OWN)  # it led
        named = brokers.brokers[PEER]
        scene = PeerScene(tmp_path, "authorizer=acl", "super.users=User:ann", replication=named)
        nonce, answer = await scene.challenge(OPERATOR, PEER)
        await scene.ask(PROVE, proof=named.static.secret.prove(OPERATOR, PEER, answer["nonce"], nonce, accepts=False))
        while (row := await scene.name_registry_leader())["error_code"]:
            assert row["error_message"].endswith("try again")
        assert named.election.is_elected
        assert named.election.leader == PEER


async def test_records_inside_tls_are_no_views_of_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that is cut short while bytes of it are encrypted would end the process."""
    async with ReplicatedScene(tmp_path) as brokers:
        log = await brokers.create()
        epoch = await brokers.acquire(log, OWN)
        await brokers.append(log, OWN, 9000)
        leader = brokers.brokers[OWN]
        scene = PeerScene(tmp_path, replication=leader)
        await scene.enter(leader.static.secret)
        row = {"partition": 0, "current_leader_epoch": epoch, "fetch_offset": 0, "partition_max_bytes": 1 << 20}
        values = fetch_values(replica_id=PEER, max_bytes=1 << 20, topics=[{"topic": "orders", "partitions": [row]}])
        header = {"api_key": FETCH.key, "api_version": 12, "correlation_id": 1, "client_id": "peer"}
        for encrypted in (False, True):
            monkeypatch.setattr(Session, "wants_copies", encrypted)
            reply = await scene.session.handle(bytearray(FETCH.request.encode(header | values, 12)))
            assert sum(map(len, reply)) > 64 << 10
            assert all(isinstance(memoryview(part).obj, bytes | bytearray) for part in reply) is encrypted


@pytest.mark.parametrize(
    "places",
    [None, [{"topic": "orders", "partitions": [0]}], [{"topic": "@registry", "partitions": [0, 1]}]],
    ids=["all", "a topic's", "no partition 0"],
)
async def test_an_operator_names_no_leaders_of_topics(scene: PeerScene, places: list[dict[str, Any]] | None) -> None:
    """ACLs say who may do that, at the listeners for clients."""
    await scene.enter(claimed=OPERATOR, broker=OPERATOR)
    answer = await scene.ask(ELECT_LEADERS, 2, election_type=0, topic_partitions=places)
    assert answer["error_code"] == CODES["CLUSTER_AUTHORIZATION_FAILED"]
    rows = [row for topic in answer["replica_election_results"] for row in topic["partition_result"]]
    assert len(rows) == sum(len(place["partitions"]) for place in places or ())
    assert all("names the leader of @registry 0 only" in row["error_message"] for row in rows)


@pytest.mark.parametrize("message", [FETCH, KEYS, VOTE, OFFSET_FOR_LEADER_EPOCH], ids=lambda message: message.name)
async def test_an_operator_is_no_broker(scene: PeerScene, message: Message) -> None:
    await scene.enter(claimed=OPERATOR, broker=OPERATOR)
    with pytest.raises(CloseConnection, match="has not proved to be one"):
        await scene.session.handle(bytearray(message.key.to_bytes(2, "big") + bytes(40)))


@pytest.mark.parametrize(
    ("secret", "claimed"),
    [(Secret(b"something else that was guessed"), OPERATOR), (SECRET, PEER)],
    ids=["another secret", "a broker's proof"],
)
async def test_an_operator_proves_to_be_one(scene: PeerScene, secret: Secret, claimed: int) -> None:
    with pytest.raises(CloseConnection, match="does not know the secret"):
        await scene.enter(secret, claimed, OPERATOR)
    with pytest.raises(CloseConnection, match="has not proved to be one"):
        await scene.ask(ELECT_LEADERS, 2, election_type=0, topic_partitions=None)


async def test_a_proof_holds_for_one_broker(scene: PeerScene) -> None:
    with pytest.raises(CloseConnection, match="says to be broker 2 does not know"):
        await scene.enter(claimed=3)


async def test_the_proof_of_the_other_side_is_none(scene: PeerScene) -> None:
    """Sent back, what the listener proved with proves nothing."""
    _, answer = await scene.challenge()
    with pytest.raises(CloseConnection, match="does not know the secret"):
        await scene.ask(PROVE, proof=answer["proof"])


@pytest.mark.parametrize(("broker", "expected"), [(9, OWN), (OWN, OWN), (PEER, 3)], ids=["unknown", "itself", "other"])
async def test_who_is_no_peer_is_told_nothing(scene: PeerScene, broker: int, expected: int) -> None:
    with pytest.raises(CloseConnection):
        await scene.challenge(broker, expected)


async def test_there_is_one_challenge(scene: PeerScene) -> None:
    await scene.challenge()
    with pytest.raises(CloseConnection, match="a second one"):
        await scene.challenge()


async def test_a_proof_of_nothing(scene: PeerScene) -> None:
    with pytest.raises(CloseConnection, match="a proof of nothing"):
        await scene.ask(PROVE, proof=b"")


async def test_a_peer_that_claims_another_id_is_cut_off(scene: PeerScene) -> None:
    await scene.enter()
    with pytest.raises(CloseConnection, match="broker 2 says to be broker 3"):
        await scene.ask(FETCH, 12, **fetch_values(replica_id=3))


@pytest.fixture
def fetches(scene: PeerScene, monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """How long each fetch may wait, in ms, and the bytes that its answer may have; nothing is found."""
    asked: list[tuple[int, int]] = []

    async def fetch(
        follower: int, positions: Sequence[FetchPosition], wait_ms: int, room: int, *, copy: bool
    ) -> list[FetchedLog]:
        asked.append((wait_ms, room))
        return []

    monkeypatch.setattr(scene.session.replication.leading, "fetch", fetch)
    return asked


async def test_a_fetch_gets_no_more_than_it_asks_for(scene: PeerScene, fetches: list[tuple[int, int]]) -> None:
    await scene.enter()
    for asked in (1 << 20, 1 << 30):
        await scene.ask(FETCH, 12, **fetch_values(replica_id=PEER, max_bytes=asked))
    assert [room for _, room in fetches] == [1 << 20, ANSWER_BYTES]


@pytest.mark.parametrize(("asked", "waited"), [(-1, 0), (100, 100), ((1 << 31) - 1, LONGEST_WAIT_MS)])
async def test_a_fetch_does_not_wait_for_weeks(
    scene: PeerScene, fetches: list[tuple[int, int]], asked: int, waited: int
) -> None:
    """Its connection would be kept as long, though the peer is gone."""
    await scene.enter()
    await scene.ask(FETCH, 12, **fetch_values(replica_id=PEER, max_wait_ms=asked))
    assert [wait_ms for wait_ms, _ in fetches] == [waited]


async def test_nobody_is_authenticated_before_the_proof(scene: PeerScene) -> None:
    """So the time for a handshake is limited, and half a one makes room where connections are many."""
    assert not scene.session.is_authenticated
    await scene.challenge()
    assert not scene.session.is_authenticated


@pytest.mark.parametrize("broker", [PEER, OPERATOR])
async def test_who_has_proved_it_is_authenticated(scene: PeerScene, broker: int) -> None:
    await scene.enter(claimed=broker, broker=broker)
    assert scene.session.is_authenticated


async def test_quotas_of_clients_are_not_those_of_brokers(scene: PeerScene, monkeypatch: pytest.MonkeyPatch) -> None:
    async def fetch(
        follower: int, positions: Sequence[FetchPosition], wait_ms: int, room: int, *, copy: bool
    ) -> list[FetchedLog]:
        rooms.append(room)
        return [FetchedLog("orders:0", records=(bytes(1000),))]

    rooms: list[int] = []
    monkeypatch.setattr(scene.session.replication.leading, "fetch", fetch)
    scene.broker.quotas.alter(QuotaEntity(DEFAULT, None), {QuotaKey.FETCH: 1.0, QuotaKey.REQUEST: 0.001})
    await scene.enter()
    await scene.ask(FETCH, 12, **fetch_values(replica_id=PEER, max_bytes=1 << 20))
    assert rooms == [1 << 20]
    assert not scene.broker.quotas.throttled


async def test_requests_are_small_until_it_is_known_who_sends_them(scene: PeerScene) -> None:
    await scene.enter()
    assert scene.frames.feed((1 << 20).to_bytes(4, "big")) == []
    assert scene.frames.announced == 1 << 20


async def test_a_broker_sends_more_than_clients_may(tmp_path: Path) -> None:
    """A save has the value that is to be there, and the one that is: each may have nearly 32 MB."""
    scene = PeerScene(tmp_path, "socket.request.max.bytes=100000")
    await scene.enter()
    size = 2 * (32 << 20)
    assert scene.frames.feed(size.to_bytes(4, "big")) == []
    assert scene.frames.announced == size


async def test_requests_of_an_operator_stay_small(scene: PeerScene) -> None:
    await scene.enter(claimed=OPERATOR, broker=OPERATOR)
    with pytest.raises(CodecError, match="OVERSIZE"):
        scene.frames.feed((1 << 20).to_bytes(4, "big"))


async def test_a_large_request_of_a_stranger_is_not_waited_for(scene: PeerScene) -> None:
    with pytest.raises(CodecError, match="OVERSIZE"):
        scene.frames.feed((1 << 20).to_bytes(4, "big"))


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (["node.id=1"], "has to name the file of the secret"),
        (["node.id=4"], "node.id=4 is not among replication.peers"),
        ([], "say which of them this broker is"),
        (["node.id=1", "replication.secret.file=/nowhere"], "/nowhere: No such file"),
    ],
    ids=["no secret", "not among them", "no id", "no file"],
)
def test_settings_that_cannot_be(settings: list[str], words: str) -> None:
    with pytest.raises(SettingError, match=words):
        read_static_peers(read_settings(["replication.peers=1@a:1,2@b:2", *settings]))


def test_a_secret_that_is_too_short(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("short")
    settings = ["replication.peers=1@a:1,2@b:2", "node.id=1", f"replication.secret.file={tmp_path}/secret"]
    with pytest.raises(SettingError, match="has 5 characters, and needs 16"):
        read_static_peers(read_settings(settings))


def test_a_broker_named_twice() -> None:
    with pytest.raises(SettingError, match="names broker 1 twice"):
        read_static_peers(read_settings(["replication.peers=1@a:1,1@b:2", "node.id=1"]))
