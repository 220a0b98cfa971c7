"""The other brokers over TCP: connections that both sides have proved to be who they are on."""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from random import Random
from time import monotonic
from typing import Any, Final

from korvet_fast.client.backoff import Backoff
from korvet_fast.client.connection import Connection, connect
from korvet_fast.client.protocol.errors import ClientError, ConnectionLost, Unreachable, error_of
from korvet_fast.client.security import PLAINTEXT, Security
from korvet_fast.core.replication.peers import (
    METADATA_LOG,
    EpochEnd,
    EpochRequest,
    FetchedLog,
    FetchPosition,
    KeyAnswer,
    KeyRequest,
    NotCarriedOut,
    Vote,
    VoteRequest,
)
from korvet_fast.core.replication.quorum import LogPosition, Promise
from korvet_fast.core.replication.secret import Secret, make_nonce
from korvet_fast.core.replication.static_peers import StaticPeers
from korvet_fast.errors import ChangeTooLarge, Errors, OutcomeUnknown, StoreError
from korvet_fast.wire.kafka.shapes.fetch import FETCH
from korvet_fast.wire.kafka.shapes.message import Message
from korvet_fast.wire.kafka.shapes.offsets import OFFSET_FOR_LEADER_EPOCH
from korvet_fast.wire.replica.shapes import CHALLENGE, KEYS, PROVE, VOTE

logger = logging.getLogger(__name__)

_PATIENCE: Final = 5.0  # seconds for a connection, and for each answer
_PAUSES: Final = (0.05, 1.0)  # seconds after a refusal, as Kafka's reconnect.backoff.ms and reconnect.backoff.max.ms
_DAILY: Final = 86_400.0  # seconds between two looks at whether new connections would come about
_LARGEST: Final = 64 << 20  # bytes of an answer
_ROOM: Final = 8 << 20  # bytes of records that a fetch asks for
# Where much is missing, all answers are full: to send, check, write and flush 2 MB takes about a millisecond each, in
# which the produces of others wait at both brokers.
_CATCHING_UP_ROOM: Final = 2 << 20

_KINDS: Final[Mapping[Errors, type[StoreError]]] = {  # of what another broker answers; all other errors: `StoreError`
    Errors.NOT_LEADER_OR_FOLLOWER: NotCarriedOut,
    Errors.REQUEST_TIMED_OUT: OutcomeUnknown,
    Errors.POLICY_VIOLATION: ChangeTooLarge,
}

Values = dict[str, Any]


class Refusal:
    """A broker answers, and the two do not agree on who they are, or on a protocol. `reason`: why, at the last attempt.

    What is asked of it meanwhile fails at once, in the same words.
    """

    __slots__ = ("backoff", "reason")

    def __init__(self) -> None:
        self.backoff = Backoff(*_PAUSES, Random())  # noqa: S311 pauses, no secrets
        self.reason = ""

    def note(self, error: ClientError) -> None:
        """An attempt failed. TCP may lose the reason that the other side gave: then that of the last time holds."""
        if not (self.reason and isinstance(error, ConnectionLost)):
            self.reason = str(error)


class ReplicaPeers:
    """See `core.replication.peers.Peers`.

    Answers of a connection come in order, so what must not wait behind something else has a connection of its own: a
    change of keys waits until most brokers have copied the change, and copying begins with the ends of epochs.
    """

    def __init__(self, static: StaticPeers, security: Security = PLAINTEXT) -> None:
        self._static = static
        self._security = security
        self._refusals: dict[int, Refusal] = {}
        self._connections: dict[tuple[int, str], Connection] = {}
        self._connecting: dict[tuple[int, str], asyncio.Lock] = {}

    async def fetch(
        self, broker: int, positions: Sequence[FetchPosition], wait_ms: int, *, catching_up: bool = False
    ) -> list[FetchedLog]:
        """See `Peers.fetch`."""
        room = _CATCHING_UP_ROOM if catching_up else _ROOM
        topics: dict[str, list[Values]] = {}
        for log, epoch, offset in positions:
            topic, _, index = log.rpartition(":")
            row = {
                "partition": int(index),
                "current_leader_epoch": epoch,
                "fetch_offset": offset,
                "partition_max_bytes": room,
            }
            topics.setdefault(topic, []).append(row)
        request: Values = {
            "replica_id": self._static.own,
            "max_wait_ms": wait_ms,
            "min_bytes": 1,
            "max_bytes": room,
            "topics": [{"topic": topic, "partitions": rows} for topic, rows in topics.items()],
        }
        answer = await self._request(broker, _find_purpose(positions[0].log, catching_up), FETCH, request)
        return [
            FetchedLog(
                f"{topic['topic']}:{row['partition_index']}",
                _find_error(row),
                row["high_watermark"],
                row["log_start_offset"],
                [row["records"]] if row["records"] else (),
                row["current_leader"]["leader_id"],
                row["current_leader"]["leader_epoch"],
            )
            for topic in answer["responses"]
            for row in topic["partitions"]
        ]

    async def find_epoch_ends(
        self, broker: int, asked: Sequence[EpochRequest], *, catching_up: bool = False
    ) -> list[EpochEnd]:
        """See `Peers.find_epoch_ends`."""
        topics: dict[str, list[Values]] = {}
        for log, leader_epoch, epoch in asked:
            topic, _, index = log.rpartition(":")
            row = {"partition": int(index), "current_leader_epoch": leader_epoch, "leader_epoch": epoch}
            topics.setdefault(topic, []).append(row)
        request = {
            "replica_id": self._static.own,
            "topics": [{"topic": topic, "partitions": rows} for topic, rows in topics.items()],
        }
        answer = await self._request(broker, _find_purpose(asked[0].log, catching_up), OFFSET_FOR_LEADER_EPOCH, request)
        return [
            EpochEnd(f"{topic['topic']}:{row['partition']}", _find_error(row), (row["leader_epoch"], row["end_offset"]))
            for topic in answer["topics"]
            for row in topic["partitions"]
        ]

    async def ask_keys(self, broker: int, request: KeyRequest) -> KeyAnswer:
        """See `Peers.ask_keys`."""
        changes = [{"key": key, "value": value, "expected": expected} for key, value, expected in request.changes]
        values = {"verb": int(request.verb), "key": request.key, "changes": changes, "after": request.after}
        answer = await self._request(broker, "keys", KEYS, values)
        _check(answer)
        return KeyAnswer(answer["done"], answer["number"], {row["key"]: row["value"] for row in answer["rows"]})

    async def vote(self, broker: int, request: VoteRequest) -> Vote:
        """See `Peers.vote`."""
        last_epoch, end = request.position
        values = {
            "candidate": request.candidate,
            "epoch": request.epoch,
            "last_epoch": last_epoch,
            "end_offset": end,
            "trial": request.trial,
            "unclean": request.unclean,
        }
        answer = await self._request(broker, "votes", VOTE, values)
        _check(answer)
        position = LogPosition(answer["last_epoch"], answer["end_offset"])
        promise = Promise(answer["granted"], answer["epoch"], position, answer["new"])
        return Vote(promise, answer["leader_id"], answer["elected"])

    async def watch(self, daily: float = _DAILY) -> None:
        """See `Peers.watch`."""
        while self._security.tls:
            await asyncio.sleep(daily)
            for broker in {broker for (broker, _), one in self._connections.items() if one.failure is None}:
                try:
                    await (await self._connect(broker)).close()
                except NotCarriedOut as error:
                    logger.warning("%s. Open connections to it go on, and a new one does not come about", error.detail)

    async def close(self) -> None:
        """See `Peers.close`."""
        for connection in self._connections.values():
            await connection.close()

    # -- connections -------------------------------------------------------------------------------------------------

    def _request(
        self, broker: int, purpose: str, message: Message, values: Mapping[str, Any]
    ) -> "asyncio.Task[Values]":
        """Ask a broker, in a task: who waits for an answer may be in none. Raises `StoreError`."""
        return asyncio.get_running_loop().create_task(self._exchange(broker, purpose, message, values))

    async def _exchange(self, broker: int, purpose: str, message: Message, values: Mapping[str, Any]) -> Values:
        connection = await self._find(broker, purpose)
        try:
            return await connection.request(message, values)
        except ClientError as error:
            raise OutcomeUnknown(f"broker {broker}: {error}") from None

    async def _find(self, broker: int, purpose: str) -> Connection:
        """An open connection. Raises `NotCarriedOut`."""
        key = broker, purpose
        async with self._connecting.setdefault(key, asyncio.Lock()):
            connection = self._connections.get(key)
            if connection is None or connection.failure is not None:
                connection = self._connections[key] = await self._connect(broker)
            return connection

    async def _connect(self, broker: int) -> Connection:
        """A new connection; no attempt is made soon after a refusal. Raises `NotCarriedOut`.

        A broker that cannot be reached is tried at once: it may be starting.
        """
        refusal = self._refusals.get(broker)
        if refusal is not None:
            if monotonic() < refusal.backoff.until:
                raise NotCarriedOut(f"broker {broker}: {refusal.reason}")
            refusal.backoff.fail(monotonic())  # the other purposes wait for what comes of this attempt
        try:
            connection = await connect(self._static.addresses[broker], _PATIENCE, _LARGEST, self._security)
            try:
                await introduce(connection, self._static.secret, self._static.own, broker)
            except BaseException:
                await connection.close()
                raise
        except Unreachable as error:
            self._refusals.pop(broker, None)
            raise NotCarriedOut(f"broker {broker}: {error}") from None
        except ClientError as error:
            refusal = self._refusals.setdefault(broker, Refusal())
            if not refusal.backoff.failures:
                refusal.backoff.fail(monotonic())
            refusal.note(error)
            raise NotCarriedOut(f"broker {broker}: {refusal.reason}") from None
        self._refusals.pop(broker, None)
        return connection


async def introduce(connection: Connection, secret: Secret, own: int, broker: int) -> None:
    """Prove who connects, a broker or `OPERATOR`; the other side proves to be `broker`. Raises `ClientError`."""
    nonce = make_nonce()
    answer = await connection.request(CHALLENGE, {"broker_id": own, "expected_id": broker, "nonce": nonce})
    theirs = answer["nonce"]
    if not secret.is_proof(answer["proof"], broker, own, nonce, theirs, accepts=True):
        raise ClientError(f"{connection.endpoint} does not know the secret of replication.peers")
    await connection.request(PROVE, {"proof": secret.prove(own, broker, theirs, nonce, accepts=False)})


def _find_purpose(log: str, catching_up: bool) -> str:
    """Of a connection by which a log is copied."""
    if log == METADATA_LOG:
        return "metadata log"
    return "logs that catch up" if catching_up else "logs"


def _find_error(row: Values) -> Errors:
    return error_of(row["error_code"])


def _check(answer: Values) -> None:
    """Raises what the other broker answered."""
    error = _find_error(answer)
    if error:
        raise _KINDS.get(error, StoreError)(answer["error_message"] or error.sentence)
