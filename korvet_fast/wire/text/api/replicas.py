"""CHALLENGE and PROVE, REPLICA_FETCH and SET_PARTITION_ROLE: for peers, who have proved to be what they say.

Whoever else could send them could forge that a record was copied, or stop a partition. The progress is the one that
followers on a listener replica:// make, and so are the rules. Replicas of a partition are counted from its leader,
which is 0, in the order of Metadata's replicas; brokers have the ids of replication.peers.
"""

import binascii
from collections.abc import Sequence
from typing import Final

from korvet_fast.core.replication.handshake import Handshake, NotPeer
from korvet_fast.core.replication.leader_progress import LeaderProgress
from korvet_fast.core.replication.peers import METADATA_LOG, FetchPosition
from korvet_fast.core.replication.replica import Replica
from korvet_fast.core.replication.replication import Replication
from korvet_fast.errors import NONE, Errors, KorvetError
from korvet_fast.wire.text.arguments import Arguments, BadArguments
from korvet_fast.wire.text.costs import MOST_BYTES
from korvet_fast.wire.text.errors import BAD_REQUEST, NOT_LEADER, STORAGE_ERROR, UNAUTHORIZED, translate
from korvet_fast.wire.text.session import Payload, RequestError, Session

_PATIENCE: Final = 5.0  # seconds until a broker has to lead
_AGAIN: Final = 0.02


async def challenge(session: Session, arguments: Arguments) -> Payload:
    replication = _find_replication(session)
    if session.handshake is None:
        session.handshake = Handshake(replication.static)
    try:
        nonce, proof = session.handshake.challenge(int(arguments["broker_id"]), _read_hex(arguments, "nonce"))
    except NotPeer as error:
        raise session.disconnect(str(error)) from None
    return [f"broker={replication.own} nonce={nonce.hex()} proof={proof.hex()}".encode()]


async def prove(session: Session, arguments: Arguments) -> Payload:
    replication, proof = _find_replication(session), _read_hex(arguments, "proof")
    try:
        broker = (session.handshake or Handshake(replication.static)).prove(proof)
    except NotPeer as error:
        raise session.disconnect(str(error)) from None
    return [b"broker=%d" % broker]


async def fetch(session: Session, arguments: Arguments) -> Payload:
    replication, follower = _find_replication(session), _find_peer(session)
    index, number, offset = int(arguments["partition"]), int(arguments["replica_id"]), int(arguments["offset"])
    log = f"{arguments['topic']}:{index}"
    order = _count_replicas(replication, log)
    if not 1 <= number < len(order):
        raise BadArguments(f"replica_id is from 1 to {len(order) - 1}; 0 is the leader")
    if order[number] != follower:
        raise RequestError(UNAUTHORIZED, "this replica is another broker's")
    epoch = int(arguments["epoch"]) if "epoch" in arguments else _find_epoch(replication, log)
    room = min(int(arguments.get("max_bytes", 0)), MOST_BYTES, session.answer_room())
    (found,) = await replication.leading.fetch(follower, [FetchPosition(log, epoch, offset)], 0, room, copy=True)
    if found.error == Errors.OFFSET_OUT_OF_RANGE:
        raise RequestError(BAD_REQUEST, f"the leader's log begins at {found.start}, and does not reach that offset")
    if found.error is not NONE:
        raise RequestError(*translate(found.error))
    replica = _find_replica(replication, log)
    text = f"replica={number} {_describe_progress(replica, follower, order)}".encode()
    return [text, *_write_batches(session, found.records)] if "max_bytes" in arguments else [text]


def _find_replica(replication: Replication, log: str) -> Replica:
    replica = replication.replicas.logs.get(log)
    if replica is None:
        raise RequestError(NOT_LEADER, "this broker has no copy of the partition")
    return replica


def _find_epoch(replication: Replication, log: str) -> int:
    """The present epoch: a leader has its own before the metadata log tells it."""
    replica = replication.replicas.logs.get(log)
    if replica is not None and replica.progress is not None:
        return replica.progress.epoch
    return replication.find_leader(log)[1]


def _describe_progress(replica: Replica, follower: int, order: Sequence[int]) -> str:
    progress = replica.progress
    if not isinstance(progress, LeaderProgress):
        raise RequestError(*translate(Errors.NOT_LEADER_OR_FOLLOWER))  # another broker was named while this one read
    isr = ",".join(str(number) for number, broker in enumerate(order) if broker in progress.isr)
    lacks = str(len(progress.isr) < len(order)).lower()
    acked = progress.find_end(follower)
    return f"acked_offset={acked} hw={progress.high_watermark} isr=[{isr}] under_replicated={lacks}"


def _write_batches(session: Session, records: Sequence[bytes | bytearray | memoryview]) -> list[bytes]:
    if sum(map(len, records)) > session.service.value_limit:
        raise RequestError(
            BAD_REQUEST, "the batch at this offset is too large for a line; copy it from a listener replica://"
        )
    return [b" batches=", binascii.b2a_base64(b"".join(records), newline=False)]


async def set_role(session: Session, arguments: Arguments) -> Payload:
    replication = _find_replication(session)
    _find_peer(session)
    topic, index, role = str(arguments["topic"]), int(arguments["partition"]), str(arguments["role"])
    log, leads = f"{topic}:{index}", role == "leader"
    if log == METADATA_LOG:
        if not leads:
            raise RequestError(BAD_REQUEST, "have another broker lead @registry, and this one follows")
        why = await replication.election.become_leader()
        replica = replication.metadata_replica
    else:
        order = _count_replicas(replication, log)
        if replication.own not in order:
            raise RequestError(NOT_LEADER, "this broker has no copy of the partition")
        why = await _appoint(replication, log, order, session.broker.clock.monotonic() + _PATIENCE, leads=leads)
        replica = _find_replica(replication, log)
    if why:
        raise RequestError(STORAGE_ERROR, why)
    if leads:
        await _await_leadership(session, replica)
    return [f"topic={topic} partition={index} role={role} hw={replica.high_watermark}".encode()]


async def _appoint(replication: Replication, log: str, order: Sequence[int], until: float, *, leads: bool) -> str:
    """Have this broker lead (`until`: see `Replicas.appoint`), or the next one in sync; returns why not, or ""."""
    replicas = replication.replicas
    if leads:
        return await replicas.appoint(log, replication.own, unclean=False, until=until)
    state = replicas.find_state(log)
    if state is None or state.leader != replication.own:
        return ""
    heir = next((broker for broker in order if broker != replication.own and broker in state.isr), None)
    return "no other broker is in sync" if heir is None else await replicas.appoint(log, heir, unclean=False)


async def _await_leadership(session: Session, replica: Replica) -> None:
    clock = session.broker.clock
    until = clock.monotonic() + _PATIENCE
    while replica.progress is None:
        if clock.monotonic() > until:
            raise RequestError(STORAGE_ERROR, "this broker is to lead, but has not taken over yet")
        await clock.sleep(_AGAIN)


def _find_replication(session: Session) -> Replication:
    if session.broker.replication is None:
        raise RequestError(UNAUTHORIZED, "this is for the broker's peers, and it has none")
    return session.broker.replication


def _find_peer(session: Session) -> int:
    """The broker that is there."""
    if session.handshake is None or session.handshake.peer < 0:
        raise RequestError(UNAUTHORIZED, "this is for the broker's peers: CHALLENGE and PROVE come first")
    return session.handshake.peer


def _count_replicas(replication: Replication, log: str) -> list[int]:
    """The brokers that have copies, the leader first."""
    replicas, leader = replication.replicas.find_replicas(log), replication.find_leader(log)[0]
    if not replicas:
        raise KorvetError(Errors.UNKNOWN_TOPIC_OR_PARTITION)
    return sorted(replicas, key=lambda broker: broker != leader)


def _read_hex(arguments: Arguments, name: str) -> bytes:
    try:
        return bytes.fromhex(str(arguments[name]))
    except ValueError:
        raise BadArguments(f"{name} is written in hexadecimal digits") from None
