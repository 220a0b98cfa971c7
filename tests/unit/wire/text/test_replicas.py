"""Peers in the text protocol: who they are has to be proved, and their progress is that of the replica listener."""

import asyncio
from base64 import b64decode
from collections.abc import Sequence
from pathlib import Path

import pytest

from korvet_fast.config import read_settings
from korvet_fast.core.broker import Broker
from korvet_fast.core.fair_executor import FairExecutor
from korvet_fast.core.replication.peers import FetchedLog, FetchPosition
from korvet_fast.core.replication.secret import Secret, make_nonce
from korvet_fast.wire.dialect import CloseConnection
from korvet_fast.wire.text.dialect import TextDialect
from replicated_scene import ReplicatedScene

SECRET = Secret(b"known to all")
OWN, PEER = 1, 2
STRANGER = "V1|0|ERR|UNAUTHORIZED|this is for the broker's peers"


class TextPeer:
    """One connection to broker 1's text listener."""

    def __init__(self, scene: ReplicatedScene, broker: int = OWN) -> None:
        replication = scene.brokers[broker]
        self.broker = Broker(scene.stores[broker], read_settings([]), replication=replication)
        self.session = TextDialect(self.broker, 0, FairExecutor(1, "check")).session("peer")
        self.own = broker

    async def ask(self, command: str, arguments: str) -> str:
        answer = await self.session.handle(bytearray(f"V1|1|{command}|{arguments}".encode()))
        return b"".join(map(bytes, answer)).decode().removesuffix("\n").removeprefix("V1|1|")

    async def challenge(self, broker: int = PEER) -> tuple[bytes, dict[str, str]]:
        nonce = make_nonce()
        answer = await self.ask("CHALLENGE", f"{broker} {nonce.hex()}")
        return nonce, dict(word.split("=") for word in answer.removeprefix("OK|").split(" "))

    async def enter(self, broker: int = PEER, secret: Secret = SECRET) -> str:
        nonce, answer = await self.challenge(broker)
        proof = secret.prove(broker, self.own, bytes.fromhex(answer["nonce"]), nonce, accepts=False)
        return await self.ask("PROVE", proof.hex())


def running(place: Path, lag_ms: int = 100_000) -> ReplicatedScene:
    """Three brokers. `lag_ms`: who is silent for so long is out of sync."""
    return ReplicatedScene(place, f"replica.lag.timeout={lag_ms}")


async def begin(scene: ReplicatedScene, records: int = 3) -> str:
    """Broker 1 leads a log with records that nobody else has; brokers 2 and 3 copy by text only."""
    log = await scene.create(min_insync_replicas=2)
    scene.mute = {(2, log), (3, log)}
    await scene.acquire(log, OWN)
    scene.append(log, OWN, records)
    return log


async def test_progress_in_lines_moves_the_watermark(tmp_path: Path) -> None:
    async with running(tmp_path) as scene:
        log = await begin(scene)
        second, third = TextPeer(scene), TextPeer(scene)
        assert await second.enter() == "OK|broker=2"
        assert await third.enter(3) == "OK|broker=3"
        assert await second.ask("REPLICA_FETCH", "orders 0 1 0") == (
            "OK|replica=1 acked_offset=0 hw=0 isr=[0,1,2] under_replicated=false"
        )
        replica = scene.replica(log, OWN)
        await scene.until(lambda: replica.progress is not None and replica.progress.end == 3)
        await second.ask("REPLICA_FETCH", "orders 0 1 3")
        assert replica.high_watermark == 0  # broker 3 is in sync as well
        assert await third.ask("REPLICA_FETCH", "orders 0 2 3 epoch=0") == (
            "OK|replica=2 acked_offset=3 hw=3 isr=[0,1,2] under_replicated=false"
        )


async def test_batches_are_those_of_the_log(tmp_path: Path) -> None:
    async with running(tmp_path) as scene:
        log = await begin(scene)
        peer = TextPeer(scene)
        await peer.enter()
        head, _, text = (await peer.ask("REPLICA_FETCH", "orders 0 1 0 max_bytes=1000000")).partition(" batches=")
        assert head == "OK|replica=1 acked_offset=0 hw=0 isr=[0,1,2] under_replicated=false"
        stored = await scene.replica(log, OWN).opened.read(0, 1 << 20, 3)
        assert b64decode(text) == b"".join(map(bytes, stored.data))
        assert (await peer.ask("REPLICA_FETCH", "orders 0 1 3 max_bytes=1000000")).endswith(" batches=")
        assert (await peer.ask("REPLICA_FETCH", "orders 0 1 0 max_bytes=0")).endswith(" batches=")


async def test_batches_are_read_as_copies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are looked into, to make a line of them: a file that is cut short meanwhile would end the process."""
    async with running(tmp_path) as scene:
        await begin(scene)
        peer, leading = TextPeer(scene), scene.brokers[OWN].leading
        fetch, copies = leading.fetch, list[bool]()

        async def note(
            follower: int, positions: Sequence[FetchPosition], wait_ms: int, room: int, *, copy: bool = False
        ) -> list[FetchedLog]:
            copies.append(copy)
            return await fetch(follower, positions, wait_ms, room, copy=copy)

        monkeypatch.setattr(leading, "fetch", note)
        await peer.enter()
        assert " batches=" in await peer.ask("REPLICA_FETCH", "orders 0 1 0 max_bytes=1000000")
        assert copies == [True]


async def test_an_outsider_cannot_say_that_something_was_copied(tmp_path: Path) -> None:
    async with running(tmp_path) as scene:
        log = await begin(scene)
        outsider = TextPeer(scene)
        refusal = "ERR|UNAUTHORIZED|this is for the broker's peers: CHALLENGE and PROVE come first"
        assert await outsider.ask("REPLICA_FETCH", "orders 0 1 3") == refusal
        assert await outsider.ask("SET_PARTITION_ROLE", "orders 0 follower") == refusal
        await outsider.challenge()
        assert await outsider.ask("REPLICA_FETCH", "orders 0 1 3") == refusal
        assert scene.replica(log, OWN).high_watermark == 0


@pytest.mark.parametrize("kind", ["secret", "itself", "unknown", "twice", "nothing", "echo"])
async def test_who_does_not_prove_to_be_a_peer_is_disconnected(tmp_path: Path, kind: str) -> None:
    async with running(tmp_path) as scene:
        peer = TextPeer(scene)
        with pytest.raises(CloseConnection) as caught:
            if kind == "secret":
                await peer.enter(secret=Secret(b"something else that was guessed"))
            elif kind == "nothing":
                await peer.ask("PROVE", "00")
            elif kind == "echo":
                _, answer = await peer.challenge()
                await peer.ask("PROVE", answer["proof"])
            else:
                await peer.challenge({"itself": OWN, "unknown": 9, "twice": PEER}[kind])
                await peer.challenge()
        assert caught.value.reply == [STRANGER.encode() + b"\n"]


async def test_a_peer_that_lies_is_refused(tmp_path: Path) -> None:
    async with running(tmp_path) as scene:
        log = await begin(scene)
        peer = TextPeer(scene)
        await peer.enter()
        for arguments, answer in (
            ("orders 0 2 3", "ERR|UNAUTHORIZED|this replica is another broker's"),
            ("orders 0 0 3", "ERR|BAD_REQUEST|replica_id is from 1 to 2; 0 is the leader"),
            ("orders 0 3 3", "ERR|BAD_REQUEST|replica_id is from 1 to 2; 0 is the leader"),
            ("orders 0 1 4", "ERR|BAD_REQUEST|the leader's log begins at 0, and does not reach that offset"),
            ("orders 0 1 3 epoch=7", "ERR|NOT_LEADER|"),
            ("orders 1 1 3", "ERR|UNKNOWN_TOPIC|there is no such topic or partition"),
            ("others 0 1 3", "ERR|UNKNOWN_TOPIC|there is no such topic or partition"),
        ):
            assert (await peer.ask("REPLICA_FETCH", arguments)).startswith(answer)
        assert await peer.ask("PROVE", "no digits") == "ERR|BAD_REQUEST|write: proof; one blank between two arguments"
        assert await peer.ask("PROVE", "xy") == "ERR|BAD_REQUEST|proof is written in hexadecimal digits"
        assert scene.replica(log, OWN).high_watermark == 0


async def test_an_older_epoch_counts_nothing(tmp_path: Path) -> None:
    async with running(tmp_path) as scene:
        log = await scene.create(min_insync_replicas=2)
        await scene.acquire(log, OWN)
        await scene.acquire(log, OWN)
        peer = TextPeer(scene)
        await peer.enter()
        assert (await peer.ask("REPLICA_FETCH", "orders 0 1 0 epoch=0")).startswith("ERR|NOT_LEADER|")
        assert (await peer.ask("REPLICA_FETCH", "orders 0 1 0 epoch=1")).startswith("OK|replica=1 acked_offset=0 ")


async def test_roles_change(tmp_path: Path) -> None:
    async with running(tmp_path) as scene:
        log = await scene.create(min_insync_replicas=2)
        await scene.acquire(log, OWN)
        peer = TextPeer(scene)
        await peer.enter()
        assert await peer.ask("SET_PARTITION_ROLE", "orders 0 leader") == "OK|topic=orders partition=0 role=leader hw=0"
        await scene.until(lambda: not scene.replica(log, 2).is_new)
        followed = "OK|topic=orders partition=0 role=follower hw=0"
        assert await peer.ask("SET_PARTITION_ROLE", "orders 0 follower") == followed
        await scene.until(lambda: scene.brokers[2].replicas.find_leader(log) == 2)
        # Broker 1 is replica 1 now.
        assert (await peer.ask("REPLICA_FETCH", "orders 0 1 0")).startswith("ERR|UNAUTHORIZED")
        second = TextPeer(scene, 2)
        await second.enter(3)
        refusal = "ERR|NOT_LEADER|this broker does not lead the partition now"
        assert await second.ask("REPLICA_FETCH", "orders 0 2 0") == refusal
        await scene.acquire(log, 2)
        assert (await second.ask("REPLICA_FETCH", "orders 0 2 0")).startswith("OK|replica=2 ")
        assert await second.ask("SET_PARTITION_ROLE", "@registry 0 leader") == (
            f"OK|topic=@registry partition=0 role=leader hw={scene.brokers[2].metadata_replica.high_watermark}"
        )
        assert scene.brokers[2].election.leader == 2


async def test_a_role_that_nobody_can_have(tmp_path: Path) -> None:
    async with running(tmp_path) as scene:
        log = await scene.create(replicas=(1, 2), min_insync_replicas=1)
        await scene.acquire(log, OWN)
        stranger = TextPeer(scene, 3)
        await stranger.enter()
        while (said := await stranger.ask("SET_PARTITION_ROLE", "orders 0 leader")).startswith("ERR|UNKNOWN_TOPIC"):
            await asyncio.sleep(0.01)  # it has not heard of the topic yet
        assert said == "ERR|NOT_LEADER|this broker has no copy of the partition"
        peer = TextPeer(scene)
        await peer.enter()
        assert (await peer.ask("SET_PARTITION_ROLE", "@registry 0 follower")).startswith("ERR|BAD_REQUEST|have another")


async def test_nobody_follows_where_nobody_else_could_lead(tmp_path: Path) -> None:
    async with running(tmp_path, 400) as scene:
        log = await scene.create(replicas=(1, 2), min_insync_replicas=1)
        await scene.acquire(log, OWN)
        scene.isolate(2)
        await scene.isr(log, OWN, OWN)
        peer = TextPeer(scene)
        await peer.enter(3)
        assert await peer.ask("SET_PARTITION_ROLE", "orders 0 follower") == (
            "ERR|STORAGE_ERROR|no other broker is in sync"
        )
