"""One broker asked about groups in raw frames: members that write down what was said to them, and when."""

import time
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

from group_history import NOTHING, Answer
from kafka_server import (
    CONSUMER_GROUP_HEARTBEAT,
    HEARTBEAT,
    JOIN_GROUP,
    OFFSET_COMMIT,
    OFFSET_FETCH,
    SYNC_GROUP,
    RawClient,
    error_of,
)
from raw_connection import connect

TOPIC = "t"


class Member(NamedTuple):
    """A member's own state. `generation`: or its epoch, in the consumer protocol."""

    group: str
    protocol: str = "classic"
    id: str = ""
    generation: int = -1
    session: int = 30_000  # ms

    @property
    def who(self) -> dict[str, Any]:
        return {"group_id": self.group, "member_id": self.id}


class Talk:
    """A connection to one broker; requests are answered in order."""

    def __init__(self, client: RawClient, broker: str, said: list[Answer]) -> None:
        self.client = client
        self.broker = broker
        self.said = said
        self._open: deque[Answer] = deque()

    async def ask(self, kind: str, member: Member, offset: int = NOTHING) -> tuple[Answer, Member]:
        """The answer, and the member as it is afterwards. `offset`: what to commit."""
        self.send(kind, member, offset)
        return await self.hear(member)

    def send(self, kind: str, member: Member, offset: int = NOTHING) -> None:
        """Without waiting for the answer."""
        whose = member.id if member.protocol == "consumer" else ""
        key, version, values = _request(kind, member, offset)
        self._open.append(Answer(member.group, self.broker, kind, time.monotonic(), 0, member=whose, offset=offset))
        self.client.send(key, version, values)

    async def hear(self, member: Member, awake: float = 0.0) -> tuple[Answer, Member]:
        """The next answer to `member`. `awake`: the broker stood still when it was asked, until this time."""
        row = await self.client.reply()
        asked = self._open.popleft()
        answer = asked._replace(begun=max(asked.begun, awake), received=time.monotonic())
        answer, member = _read(answer, member, row)
        self.said.append(answer)
        return answer, member

    def give_up(self) -> None:
        """No answer will come to what was asked: it may have been done or not."""
        while self._open:
            self.said.append(self._open.popleft()._replace(received=time.monotonic(), error="REQUEST_TIMED_OUT"))

    async def join(self, member: Member) -> tuple[Answer, Member]:
        """Join, twice if that is asked for."""
        answer, member = await self.ask("join", member)
        if answer.error == "MEMBER_ID_REQUIRED":
            answer, member = await self.ask("join", member)
        return answer, member


@asynccontextmanager
async def talk(port: int, broker: str, said: list[Answer]) -> AsyncIterator[Talk]:
    """To the broker on this port; what it says is appended to `said`."""
    async with connect(port) as client:
        yield Talk(client, broker, said)


def _request(kind: str, member: Member, offset: int) -> tuple[int, int, dict[str, Any]]:
    who = member.who
    if kind == "commit":
        rows = [{"partition_index": 0, "committed_offset": offset}]
        epoch = {"generation_id_or_member_epoch": member.generation}
        return OFFSET_COMMIT, 9, who | epoch | {"topics": [{"name": TOPIC, "partitions": rows}]}
    if kind == "fetch":
        topics = [{"name": TOPIC, "partition_indexes": [0]}]
        return OFFSET_FETCH, 9, {"groups": [{"group_id": member.group, "topics": topics}]}
    if member.protocol == "consumer":
        if kind == "join":
            mine = {"rebalance_timeout_ms": 60_000, "subscribed_topic_names": [TOPIC], "topic_partitions": []}
            return CONSUMER_GROUP_HEARTBEAT, 1, who | {"member_epoch": 0} | mine
        return CONSUMER_GROUP_HEARTBEAT, 1, who | {"member_epoch": member.generation}
    if kind == "join":
        times = {"session_timeout_ms": member.session, "rebalance_timeout_ms": 60_000}
        protocols = [{"name": "range", "metadata": b"what I read"}]
        return JOIN_GROUP, 9, who | times | {"protocol_type": "consumer", "protocols": protocols}
    if kind == "sync":
        assignments = [{"member_id": member.id, "assignment": b"everything"}]
        return SYNC_GROUP, 5, who | {"generation_id": member.generation, "assignments": assignments}
    return HEARTBEAT, 4, who | {"generation_id": member.generation}


def _read(answer: Answer, member: Member, row: dict[str, Any]) -> tuple[Answer, Member]:
    if answer.kind == "commit":
        return answer._replace(error=error_of(row["topics"][0]["partitions"][0])), member
    if answer.kind == "fetch":
        (group,) = row["groups"]
        found = [each["committed_offset"] for topic in group["topics"] for each in topic["partitions"]]
        return answer._replace(error=error_of(group), offset=found[0] if found else NOTHING), member
    told = error_of(row)
    if member.protocol == "consumer":
        if not told:
            member = member._replace(generation=row["member_epoch"])
    elif answer.kind == "join":
        answer = answer._replace(leader=row["leader"])
        if row["member_id"]:
            member = member._replace(id=row["member_id"])
        if not told:
            member = member._replace(generation=row["generation_id"])
    return answer._replace(error=told, generation=member.generation), member
